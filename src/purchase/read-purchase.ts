import { OperationalError } from '../core/errors.js';
import type { Order } from '../core/order.js';
import type { PurchaseStatus } from '../core/outcome.js';
import { homeBucket, type Sale, type SaleSnapshot } from '../core/sale.js';
import type { Clock } from '../core/ports/clock.js';
import type { OrderRepository } from '../core/ports/order-repository.js';
import type { PurchaseRef } from '../core/ports/purchase-notifications.js';
import type { HomeBucket, StockStore } from '../core/ports/stock-store.js';
import type { SaleSnapshots } from '../sales/sale-snapshots.js';

/** Longer than the broker keeps a message, and than reconcile looks at a sale that is closed. */
const FORGOTTEN_AFTER_MS = 8 * 24 * 60 * 60 * 1000;

export interface ReadPurchasePorts {
  readonly snapshots: Pick<SaleSnapshots, 'get'>;
  readonly store: Pick<StockStore, 'findRequest'>;
  readonly repository: Pick<OrderRepository, 'findByPurchases'>;
  readonly clock: Clock;
}

/**
 * How a purchase stands: Redis first, because a 202 is there before its row; then MySQL, the last word. News are the
 * word of MySQL and spare the question, but not before Redis says the same: what was told may never be taken back by
 * the next look, and after the death of a worker Redis may be seconds behind.
 * @param told how its order stands by the news; null when nobody said
 * @throws OperationalError redis or mysql
 */
export async function readPurchase(
  { saleId, userId, requestId }: PurchaseRef,
  told: PurchaseStatus | null,
  { snapshots, store, repository, clock }: ReadPurchasePorts,
): Promise<PurchaseStatus> {
  const snapshot = await snapshots.get(saleId);
  const home = snapshot.snapshot === 'ready' ? homeOf(snapshot.sale, userId) : { saleId, bucket: 0 };
  const look = await store.findRequest(home, userId, requestId);
  const entry = look === 'unsure' ? null : look;
  if (entry?.state === 'held') return { status: 'pending' };
  if (told !== null) return told;
  const [row] = await repository.findByPurchases(saleId, [{ userId, requestId, quantity: 1 }]);
  if (row) return statusOf(row);
  // The ledger knows an order that the book has lost: a person decides, so nothing final is said.
  if (entry !== null) return { status: 'pending' };
  // Without the card nobody knows the buyer's bucket: "not found" could be said of a purchase that was accepted.
  if (snapshot.snapshot === 'loading')
    throw new OperationalError('mysql', `sale ${saleId} is loading`, { retryable: true });
  if (look === 'unsure' && !isForgotten(snapshot, clock.nowMs())) {
    throw new OperationalError('redis', `the books of sale ${saleId} are being rebuilt`, { retryable: true });
  }
  return { status: 'not_found' };
}

/**
 * Whether the ledger may have lost the sale for good: by then every purchase that was accepted has its row. Where there
 * is no sale, there was never a purchase.
 */
const isForgotten = (snapshot: SaleSnapshot, nowMs: number): boolean =>
  snapshot.snapshot !== 'ready' || nowMs - snapshot.sale.closesAtMs > FORGOTTEN_AFTER_MS;

const homeOf = ({ saleId, buckets }: Sale, userId: string): HomeBucket => {
  return { saleId, bucket: homeBucket(userId, buckets), buckets };
};

/** An order that was cancelled or expired is still an order: the buyer once had it, and hears how it ended. */
export function statusOf(order: Pick<Order, 'orderId' | 'state' | 'reason'>): PurchaseStatus {
  if (order.state === 'failed') {
    return { status: 'failed', orderId: order.orderId, reason: order.reason ?? 'unknown' };
  }
  return { status: 'ordered', orderId: order.orderId, orderState: order.state };
}
