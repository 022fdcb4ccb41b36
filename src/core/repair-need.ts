import type { StoredSaleState, Sale } from './sale.js';

/** What must be known of a bucket to tell whether it can be trusted. */
export interface StandingOfBucket {
  /** Null: not loaded. */
  readonly state: StoredSaleState | null;
  readonly epoch: number;
  /** Whether its server is the one that it was loaded or rebuilt on. */
  readonly sameServer: boolean;
}

/**
 * Why the books of a sale in Redis cannot be trusted, the first one that holds (protocol rule 9).
 * - `in_repair`: somebody rebuilds them, or died while he did
 * - `not_loaded`: a bucket is gone
 * - `other_server`: a bucket was loaded on a server that was restarted or replaced since: its last writes may be lost
 * - `old_epoch`: the sale was rebuilt, and a bucket is from before it
 */
export type RepairNeed = 'in_repair' | 'not_loaded' | 'other_server' | 'old_epoch';

/** @returns null when every bucket can be trusted; a draft was never loaded, so it has no need */
export function repairNeedOf(
  sale: Pick<Sale, 'state' | 'epoch'>,
  buckets: readonly StandingOfBucket[],
): RepairNeed | null {
  if (sale.state === 'draft') return null;
  if (buckets.some(({ state }) => state === 'repair')) return 'in_repair';
  if (buckets.some(({ state }) => state === null)) return 'not_loaded';
  if (buckets.some(({ sameServer }) => !sameServer)) return 'other_server';
  return buckets.some(({ epoch }) => epoch < sale.epoch) ? 'old_epoch' : null;
}
