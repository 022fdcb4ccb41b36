import type { KeeperMeters } from '../core/ports/keeper-meters.js';
import type { SettlementLedger } from '../core/ports/settlement-ledger.js';
import type { Promised } from './relay-outbox.js';

export interface ReleaseUnitsPorts {
  readonly ledger: Pick<SettlementLedger, 'release'>;
  readonly meters: Pick<KeeperMeters, 'released'>;
}

/**
 * Gives units back whose row has ended, as the outbox promised in the same transaction (protocol rule 7). Once more
 * finds the request `released` and does nothing.
 */
export function releaseUnits({ ledger, meters }: ReleaseUnitsPorts) {
  return async (rows: readonly Promised<'release'>[]): Promise<void> => {
    const words = await ledger.release(rows.flatMap(({ payload }) => payload));
    meters.released(words.filter((word) => word === 'released').length);
  };
}
