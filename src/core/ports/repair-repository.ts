import type { Batch } from '../batch.js';
import type { Sale } from '../sale.js';

/** From how many buckets into how many. */
export interface Reshard {
  readonly from: number;
  readonly to: number;
}

/** What the book adds to the repair of a sale. */
export interface RepairRepository {
  /**
   * Begins a new epoch: from its commit on no batch is recorded under an older one.
   * @param atLeast the new epoch is this one or a later one, never one that was in use
   * @param actor who asked for it, for the audit log
   * @param scatter the sale has so many buckets from then on, if it has still as many as its reader saw
   * @returns the sale in its new epoch; null when there is no such sale, or it has another number of buckets by now
   * @throws OperationalError mysql; the epoch may have been raised, which does no harm
   */
  raiseEpoch(saleId: string, atLeast: number, actor: string, reshard?: Reshard): Promise<Sale | null>;

  /**
   * Batches of this sale whose dead letter nobody has decided on: their units stay held.
   * @throws OperationalError mysql
   */
  parkedBatchesOf(saleId: string): Promise<Batch[]>;
}
