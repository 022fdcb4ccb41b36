import type { Sale } from '../../core/sale.js';
import { openTransfers } from '../../core/bucket.js';
import type { SaleRepository } from '../../core/ports/sale-repository.js';
import type { TransferStore } from '../../core/ports/transfer-store.js';
import { finishTransfer, lookAtSale } from './look-at-sale.js';
import type { Job } from '../../core/job.js';

export interface FinishTransfersPorts {
  readonly sales: Pick<SaleRepository, 'list'>;
  readonly store: TransferStore;
  readonly metrics: { overdue(state: 'units_lent', count: number, oldestMs: number): void };
}

export interface FinishTransfersOptions {
  /** A transfer this old has lost whoever began it, ms. */
  readonly afterMs: number;
  /** One this old should have ended long ago, ms. */
  readonly overdueMs: number;
}

/** More sales that may still sell are no use of this system; of those that are over, so many that ended last. */
const LIVE_MAX = 10_000;
const CLOSED_MAX = 100;

/**
 * Brings units that a dead process left between two buckets to the bucket they were meant for. A sale that is being repaired is left
 * alone: the repair counts all its units, and its transfers begin anew.
 */
export function finishTransfers({ sales, store, metrics }: FinishTransfersPorts, options: FinishTransfersOptions): Job {
  return {
    name: 'finish-transfers',
    async runOnce(): Promise<void> {
      const live = await sales.list({ states: ['warm', 'open', 'paused'], max: LIVE_MAX });
      const closed = await sales.list({ states: ['closed'], max: CLOSED_MAX, order: 'closed_last' });
      const overdueMs: number[] = [];
      const failures: unknown[] = [];
      for (const sale of [...live, ...closed]) {
        if (sale.buckets === 1) continue;
        // one bucket that is out of reach must not strand the units of other sales
        await finishOf(sale).catch((error: unknown) => failures.push(error));
      }
      metrics.overdue('units_lent', overdueMs.length, Math.max(0, ...overdueMs));
      if (failures.length > 0) throw failures[0];

      async function finishOf(sale: Sale): Promise<void> {
        const look = await lookAtSale(sale, store);
        for (const transfer of openTransfers(look?.buckets ?? [])) {
          if (transfer.ageMs < options.afterMs) continue;
          const finishing = finishTransfer(sale.saleId, transfer, look?.epoch ?? 0, store);
          const finished = await finishing.catch((error: unknown) => (failures.push(error), null));
          const lateMs = transfer.ageMs - options.overdueMs;
          if (finished === null && lateMs > 0) overdueMs.push(lateMs);
        }
      }
    },
  };
}
