import type { BucketTransfers, UnitTransfer, BucketRef } from '../bucket.js';

/** The state of one bucket at one moment. */
export interface BucketState extends BucketTransfers {
  readonly epoch: number;
  readonly unitsLeft: number;
}

/**
 * - `transferred`: these units have left. While open, repeated calls return this transfer, and no other units leave
 * - `empty`: the bucket has no units
 * - `unavailable`: not loaded, in repair, in need of repair, or in another epoch; nothing was changed
 */
export type TransferredOut =
  | { readonly outcome: 'transferred'; readonly seq: number; readonly units: number }
  | { readonly outcome: 'empty' | 'unavailable' };

/** `already_received` means that this transfer, or a later transfer of the pair, has already arrived. */
export type TransferredIn =
  | { readonly outcome: 'received' | 'already_received'; readonly unitsLeft: number }
  | { readonly outcome: 'unavailable' };

/**
 * Moves units between buckets in three steps, each in one bucket: `transferOut` takes them out and remembers them,
 * `transferIn` puts them in, `endTransfer` closes the transfer in the sending bucket. Any process may finish an open
 * transfer. A repeated, late or foreign step (another epoch) changes nothing. Methods throw OperationalError redis;
 * call again.
 */
export interface TransferStore {
  /**
   * Returns null if the bucket is not loaded, is in repair or needs repair. Source: lua/read-transfers-3.lua
   * @param buckets of the sale
   */
  read(ref: BucketRef, buckets: number): Promise<BucketState | null>;

  /**
   * Takes half of the units, rounded up, at least `least`, at most all. After an error, the next process to find the
   * open transfer may finish it. Source: lua/transfer-out-3.lua
   * @param least 1 or more
   */
  transferOut(from: BucketRef, to: number, epoch: number, least: number): Promise<TransferredOut>;

  /** Puts the units into the receiving bucket, once. Source: lua/transfer-in-3.lua */
  transferIn(saleId: string, transfer: UnitTransfer, epoch: number): Promise<TransferredIn>;

  /** Call it only after `transferIn` has put the units in. Source: lua/transfer-end-2.lua */
  endTransfer(
    saleId: string,
    transfer: UnitTransfer,
    epoch: number,
  ): Promise<'ended' | 'already_ended' | 'unavailable'>;
}
