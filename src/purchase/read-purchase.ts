import { OperationalError } from '../core/errors.js';
import type { Order } from '../core/order.js';
import type { PurchaseStatus } from '../core/outcome.js';
import type { SaleSnapshot } from '../core/sale.js';
import { homeBucketOf } from '../core/bucket.js';
import type { Clock } from '../core/ports/clock.js';
import type { OrderRepository } from '../core/ports/order-repository.js';
import type { RequestRef } from '../core/purchase.js';
import type { StockStore } from '../core/ports/stock-store.js';
import type { SaleSnapshots } from '../sales/sale-snapshots.js';
import type { ClosedRows } from './closed-rows.js';

/** Longer than the broker keeps a message and reconcile compares a closed sale. */
const FORGOTTEN_AFTER_MS = 8 * 24 * 60 * 60 * 1000;

export interface ReadPurchasePorts {
  readonly snapshots: SaleSnapshots;
  readonly store: StockStore;
  readonly repository: OrderRepository;
  readonly closedRows: ClosedRows;
  readonly clock: Clock;
}

/**
 * Reads first from Redis, because a 202 is sent before the row exists, then from MySQL, which has the final state. A
 * notification saves the query, but counts only once Redis has the order too: Redis may lag seconds behind after the
 * death of a worker, and the next read must not take back what a buyer has seen. A retired sale is only in MySQL.
 * @param notified the status of the order from a notification, or null
 * @throws OperationalError redis or mysql
 */
export async function readPurchase(
  { saleId, userId, requestId }: RequestRef,
  notified: PurchaseStatus | null,
  { snapshots, store, repository, closedRows, clock }: ReadPurchasePorts,
): Promise<PurchaseStatus> {
  const snapshot = await snapshots.get(saleId);
  if (snapshot.snapshot === 'ready' && snapshot.sale.retiredAtMs !== null) {
    const row = await closedRows.find(saleId, { userId, requestId });
    if (row === 'overloaded') throw new OperationalError('mysql', 'too many reads at once', { retryable: true });
    return row === null ? { status: 'not_found' } : statusOf(row);
  }
  const home = snapshot.snapshot === 'ready' ? homeBucketOf(snapshot.sale, userId) : { saleId, bucket: 0 };
  const found = await store.findRequest(home, userId, requestId);
  const entry = found === 'unsure' ? null : found;
  if (entry?.state === 'held') return { status: 'pending' };
  if (notified !== null) return notified;
  const [row] = await repository.findByPurchases(saleId, [{ userId, requestId }]);
  if (row) return statusOf(row);
  // Redis has an order that MySQL has lost. An operator decides, so the answer is not final.
  if (entry !== null) return { status: 'pending' };
  // Without the snapshot, the bucket is unknown, and an accepted purchase could be reported as "not found".
  if (snapshot.snapshot === 'loading') {
    throw new OperationalError('mysql', `sale ${saleId} is loading`, { retryable: true });
  }
  if (found === 'unsure' && !isForgotten(snapshot, clock.nowMs())) {
    if (snapshot.snapshot === 'ready' && snapshot.sale.state === 'closed') await store.askForRepair(saleId);
    throw new OperationalError('redis', `sale ${saleId} is being rebuilt`, { retryable: true });
  }
  return { status: 'not_found' };
}

/** Whether Redis may have lost the sale for good. By then, every accepted purchase has its row. */
const isForgotten = (snapshot: SaleSnapshot, nowMs: number): boolean =>
  snapshot.snapshot !== 'ready' || nowMs - snapshot.sale.closesAtMs > FORGOTTEN_AFTER_MS;

/** A cancelled or expired order is still `ordered`. Its state says how it ended. */
export function statusOf(order: Pick<Order, 'orderId' | 'state' | 'reason'>): PurchaseStatus {
  if (order.state === 'failed') {
    return { status: 'failed', orderId: order.orderId, reason: order.reason ?? 'unknown' };
  }
  return { status: 'ordered', orderId: order.orderId, orderState: order.state };
}
