import type { BucketStatus } from './ports/repair-stores.js';
import type { Sale } from './sale.js';

/**
 * Why the data of a sale in Redis cannot be trusted: the first reason that applies (protocol rule 11).
 * - `in_repair`: a repair is under way, or its process has died
 * - `not_loaded`: a bucket is gone
 * - `other_server`: loaded on a server that was restarted or replaced since, so its last writes may be lost
 * - `old_epoch`: the sale was rebuilt, but a bucket is from before that
 */
export type RepairNeed = 'in_repair' | 'not_loaded' | 'other_server' | 'old_epoch';

/** Returns null if every bucket can be trusted. A draft was never loaded; a retired sale is not in Redis on purpose. */
export function repairNeedOf(
  sale: Pick<Sale, 'state' | 'epoch' | 'retiredAtMs'>,
  buckets: readonly BucketStatus[],
): RepairNeed | null {
  if (sale.state === 'draft' || sale.retiredAtMs !== null) return null;
  if (buckets.some(({ state }) => state === 'repair')) return 'in_repair';
  if (buckets.some(({ state }) => state === null)) return 'not_loaded';
  if (buckets.some(({ sameServer }) => !sameServer)) return 'other_server';
  return buckets.some(({ epoch }) => epoch < sale.epoch) ? 'old_epoch' : null;
}

/** Why a sale was not resharded. `RESHARD_SENTENCES` explains each word. */
export type NotResharded =
  | 'already_resharded'
  | 'not_a_multiple'
  | 'in_repair'
  | 'superseded'
  | 'draft'
  | 'closed'
  | 'not_found';

/** The sale now has `buckets` buckets. It was locked for `lockedMs`. */
interface ReshardedSale {
  readonly outcome: 'resharded';
  readonly buckets: number;
  readonly epoch: number;
  readonly unitsLeft: number;
  readonly lockedMs: number;
}

export type Resharded = ReshardedSale | { readonly outcome: NotResharded };

/** Explains each word to people. Except with `superseded`, nothing was changed. */
export const RESHARD_SENTENCES: Readonly<Record<NotResharded, string>> = {
  already_resharded: 'The sale already has this number of buckets.',
  not_a_multiple: 'The new number of buckets must be a multiple of the current number.',
  in_repair: 'The sale is being repaired, or waits for a repair. Try again after the repair.',
  superseded: 'A repair took over the sale, or another reshard split it. Check the sale and try again.',
  draft: 'The sale is a draft. Create it with the number of buckets that it needs.',
  closed: 'The sale is over.',
  not_found: 'There is no such sale.',
};
