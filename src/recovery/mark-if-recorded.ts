import type { Batch } from '../core/batch.js';
import { isLive, type OrderState } from '../core/order.js';
import type { BatchStore, LiveOrder } from '../core/ports/batch-store.js';
import type { OrderRepository } from '../core/ports/order-repository.js';

type MarkingStore = Pick<BatchStore, 'markRecorded'>;

interface MarkedRows {
  readonly live: number;
  readonly ended: number;
}

/**
 * Marks a batch as recorded in Redis if each purchase has its row among these.
 * @returns null if a row is missing; nothing was marked
 * @throws OperationalError redis
 */
export async function markIfComplete(
  batch: Batch,
  rows: readonly (LiveOrder & { readonly state: OrderState })[],
  store: MarkingStore,
): Promise<MarkedRows | null> {
  if (rows.length < batch.purchases.length) return null;
  const live = rows.filter((row) => isLive(row.state));
  await store.markRecorded([{ batch, orders: live }]);
  return { live: live.length, ended: rows.length - live.length };
}

/**
 * Marks a batch as recorded in Redis if it wrote every row itself. Rows of another batch do not count, because this
 * batch may hold further units.
 * @returns null if a row is missing or of another batch; nothing was marked
 * @throws OperationalError redis or mysql
 */
export async function markIfRecorded(
  batch: Batch,
  {
    repository,
    store,
  }: { readonly repository: Pick<OrderRepository, 'findByPurchases'>; readonly store: MarkingStore },
): Promise<MarkedRows | null> {
  const rows = await repository.findByPurchases(batch.saleId, batch.purchases);
  const own = rows.filter((row) => row.batchId === batch.batchId);
  return markIfComplete(batch, own, store);
}
