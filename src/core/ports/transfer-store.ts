import type { BucketTransfers, UnitTransfer, BucketRef } from '../bucket.js';

/** One bucket in one moment. */
export interface BucketState extends BucketTransfers {
  readonly epoch: number;
  readonly unitsLeft: number;
}

/**
 * - `lent`: these units have left the bucket; those of a transfer that is still open are named again, and no others leave
 * - `empty`: it has none
 * - `shut`: it is not loaded, in repair or in need of it, or of another epoch; nothing was changed
 */
export type TransferredOut =
  | { readonly outcome: 'transferred'; readonly seq: number; readonly units: number }
  | { readonly outcome: 'empty' | 'unavailable' };

/** `already_borrowed`: this transfer, or a later one of the pair, has arrived before. */
export type TransferredIn =
  | { readonly outcome: 'received' | 'already_received'; readonly unitsLeft: number }
  | { readonly outcome: 'unavailable' };

/**
 * Units that move between the buckets of a sale, in three steps, each in one bucket: `lend` takes them out and remembers
 * them, `borrow` puts them in, `confirm` lets the lender forget them. Whoever finds an open transfer may finish it; a step
 * that is repeated or comes late changes nothing, and neither does one of another epoch.
 */
export interface TransferStore {
  /**
   * @param buckets of the sale
   * @returns null when the bucket cannot be trusted: not loaded, in repair or in need of it
   * @throws OperationalError redis
   * Source: lua/read-transfers-3.lua
   */
  read(ref: BucketRef, buckets: number): Promise<BucketState | null>;

  /**
   * Takes half of what the bucket has out of it, rounded up, and `least` where that is more and there are so many.
   * @param least units, from 1
   * @throws OperationalError redis; it may have been done: ask again, or leave it to whoever finds it
   * Source: lua/transfer-out-3.lua
   */
  transferOut(from: BucketRef, to: number, epoch: number, least: number): Promise<TransferredOut>;

  /**
   * Puts the units of a transfer into the bucket that they were lent to, once.
   * @throws OperationalError redis; it may have been done, so call again
   * Source: lua/transfer-in-3.lua
   */
  transferIn(saleId: string, transfer: UnitTransfer, epoch: number): Promise<TransferredIn>;

  /**
   * Tells the lender that the units have arrived. Only after `borrow` has said so.
   * @throws OperationalError redis; it may have been done, so call again
   * Source: lua/transfer-end-2.lua
   */
  endTransfer(
    saleId: string,
    transfer: UnitTransfer,
    epoch: number,
  ): Promise<'ended' | 'already_ended' | 'unavailable'>;
}
