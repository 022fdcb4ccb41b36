import type { Sale } from '../../core/sale.js';
import { openTransfers } from '../../core/bucket.js';
import { BucketFaults } from '../../core/bucket-faults.js';
import type { SaleRepository } from '../../core/ports/sale-repository.js';
import type { TransferStore } from '../../core/ports/transfer-store.js';
import { listSalesInRedis } from '../list-sales-in-redis.js';
import { finishTransfer, readStock } from './read-stock.js';
import type { Job } from '../../core/job.js';

interface FinishTransfersPorts {
  readonly sales: SaleRepository;
  readonly store: TransferStore;
  readonly metrics: { overdue(state: 'units_in_transfer', count: number, oldestMs: number): void };
}

/** Maximum number of closed sales. The last closed come first. */
const CLOSED_MAX = 100;

/**
 * Finishes transfers that a dead process left open, but not in a sale in repair: the repair counts all units and drops
 * its transfers.
 * @param options `afterMs`: age at which the process that began a transfer counts as dead; `overdueMs`: age at which a
 * transfer is overdue
 */
export function finishTransfers(
  { sales, store, metrics }: FinishTransfersPorts,
  options: { readonly afterMs: number; readonly overdueMs: number },
): Job {
  return {
    name: 'finish-transfers',
    async runOnce(): Promise<void> {
      const listed = await listSalesInRedis(sales, { closedMax: CLOSED_MAX });
      const overdueMs: number[] = [];
      const faults = new BucketFaults();
      const inBuckets = listed.filter(({ buckets }) => buckets > 1);
      // A silent bucket must neither delay other sales nor keep their units in transit for long.
      await faults.forEach(inBuckets, finishOf);
      metrics.overdue('units_in_transfer', overdueMs.length, Math.max(0, ...overdueMs));
      faults.throwIfAny();

      async function finishOf(sale: Sale): Promise<void> {
        const reading = await readStock(sale, store);
        for (const transfer of openTransfers(reading?.buckets ?? [])) {
          if (transfer.ageMs < options.afterMs) continue;
          const finishing = finishTransfer(sale.saleId, transfer, reading?.epoch ?? 0, store);
          const finished = await finishing.catch((error: unknown) => (faults.add(error), null));
          const lateMs = transfer.ageMs - options.overdueMs;
          if (finished === null && lateMs > 0) overdueMs.push(lateMs);
        }
      }
    },
  };
}
