import type { Batch } from '../core/batch.js';
import { isLive } from '../core/order.js';
import type { BatchStore } from '../core/ports/batch-store.js';
import type { OrderRepository } from '../core/ports/order-repository.js';

/**
 * Marks a batch as recorded in Redis if it wrote the row of each of its purchases. Rows that another batch wrote do not
 * count: this batch may hold units of its own besides.
 * @returns how many of the rows are live and how many have ended, or null if a row is missing or belongs to another
 *   batch: then nothing was marked
 * @throws OperationalError redis or mysql
 */
export async function markIfRecorded(
  batch: Batch,
  {
    repository,
    store,
  }: {
    readonly repository: Pick<OrderRepository, 'findByPurchases'>;
    readonly store: Pick<BatchStore, 'markRecorded'>;
  },
): Promise<{ readonly live: number; readonly ended: number } | null> {
  const rows = await repository.findByPurchases(batch.saleId, batch.purchases);
  const own = rows.filter((row) => row.batchId === batch.batchId);
  if (own.length < batch.purchases.length) return null;
  const live = own.filter((row) => isLive(row.state));
  await store.markRecorded([{ batch, orders: live }]);
  return { live: live.length, ended: own.length - live.length };
}
