import type { Batch } from '../domain/batch.js';
import type { Sale } from '../domain/sale.js';

/** What the book adds to the repair of a sale. */
export interface RepairBook {
  /**
   * Begins a new epoch: from its commit on no batch is recorded under an older one.
   * @param atLeast the new epoch is this one or a later one, never one that was in use
   * @param actor who asked for it, for the audit log
   * @returns the sale in its new epoch; null when there is no such sale
   * @throws OperationalError mysql; the epoch may have been raised, which does no harm
   */
  raiseEpoch(saleId: string, atLeast: number, actor: string): Promise<Sale | null>;

  /**
   * Batches of this sale whose dead letter nobody has decided on: their units stay held.
   * @throws OperationalError mysql
   */
  parkedBatchesOf(saleId: string): Promise<Batch[]>;
}
