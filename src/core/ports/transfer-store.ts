import type { BucketTransfers, UnitTransfer, BucketRef } from '../bucket.js';

/** The state of one bucket at one moment. */
export interface BucketState extends BucketTransfers {
  readonly epoch: number;
  readonly unitsLeft: number;
}

/**
 * - `transferred`: these units have left the bucket. While a transfer is open, repeated calls return it, and no other
 *   units leave
 * - `empty`: the bucket has no units
 * - `unavailable`: the bucket is not loaded, in repair, needs repair, or belongs to another epoch; nothing was changed
 */
export type TransferredOut =
  | { readonly outcome: 'transferred'; readonly seq: number; readonly units: number }
  | { readonly outcome: 'empty' | 'unavailable' };

/** `already_received` means that this transfer, or a later transfer of the pair, has already arrived. */
export type TransferredIn =
  | { readonly outcome: 'received' | 'already_received'; readonly unitsLeft: number }
  | { readonly outcome: 'unavailable' };

/**
 * Moves units between the buckets of a sale in three steps, each in one bucket: `transferOut` takes them out and
 * remembers them, `transferIn` puts them in, `endTransfer` closes the transfer in the sending bucket. Any process may
 * finish an open transfer. A step that is repeated, late or from another epoch changes nothing.
 */
export interface TransferStore {
  /**
   * @param buckets number of buckets of the sale
   * @returns null if the bucket cannot be trusted, because it is not loaded, is in repair or needs repair
   * @throws OperationalError redis. Source: lua/read-transfers-3.lua
   */
  read(ref: BucketRef, buckets: number): Promise<BucketState | null>;

  /**
   * Takes half of the units out of the bucket, rounded up, but at least `least` units. Never takes more than the bucket
   * has.
   * @param least units, 1 or more
   * @throws OperationalError redis; the units may be taken: call again, or leave the open transfer to the next process
   * that finds it. Source: lua/transfer-out-3.lua
   */
  transferOut(from: BucketRef, to: number, epoch: number, least: number): Promise<TransferredOut>;

  /**
   * Puts the units of a transfer into the receiving bucket, once.
   * @throws OperationalError redis; the step may be done, so call again
   * Source: lua/transfer-in-3.lua
   */
  transferIn(saleId: string, transfer: UnitTransfer, epoch: number): Promise<TransferredIn>;

  /**
   * Closes the transfer in the sending bucket. Call it only after `transferIn` has put the units in.
   * @throws OperationalError redis; the step may be done, so call again
   * Source: lua/transfer-end-2.lua
   */
  endTransfer(
    saleId: string,
    transfer: UnitTransfer,
    epoch: number,
  ): Promise<'ended' | 'already_ended' | 'unavailable'>;
}
