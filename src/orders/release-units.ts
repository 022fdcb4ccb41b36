import type { KeeperMetrics } from '../core/ports/keeper-metrics.js';
import type { BatchStore } from '../core/ports/batch-store.js';
import type { Promised } from './relay-outbox.js';

export interface ReleaseUnitsPorts {
  readonly store: Pick<BatchStore, 'release'>;
  readonly metrics: Pick<KeeperMetrics, 'released'>;
}

/**
 * Gives units back whose row has ended, as the outbox promised in the same transaction (protocol rule 7). Once more
 * finds the request `released` and does nothing.
 */
export function releaseUnits({ store, metrics }: ReleaseUnitsPorts) {
  return async (rows: readonly Promised<'release'>[]): Promise<void> => {
    const words = await store.release(rows.flatMap(({ payload }) => payload));
    metrics.released(words.filter((word) => word === 'released').length);
  };
}
