import { OperationalError } from '../domain/errors.js';
import type { Order } from '../domain/order.js';
import type { PurchaseStatus } from '../domain/outcome.js';
import { homeBucket } from '../domain/sale.js';
import type { Clock } from '../ports/clock.js';
import type { OrderBook } from '../ports/order-book.js';
import type { StockLedger } from '../ports/stock-ledger.js';
import type { SaleCards } from '../sale/sale-cards.js';

export interface GetPurchasePorts {
  readonly cards: Pick<SaleCards, 'get'>;
  readonly ledger: Pick<StockLedger, 'findRequest'>;
  readonly book: Pick<OrderBook, 'findByPurchases'>;
  readonly clock: Clock;
}

export interface PurchaseQuery {
  readonly saleId: string;
  /** From the token: nobody can ask for another buyer's purchase. */
  readonly userId: string;
  readonly requestId: string;
  /** How long to wait while the status is still `pending`; 0 answers at once. */
  readonly waitMs: number;
  /** Aborts when the asker has gone. */
  readonly signal: AbortSignal;
}

/** Long polls that may wait at the same time; one more is answered at once. Each costs one Redis read per step. */
const WAITERS_MAX = 2000;
const FIRST_STEP_MS = 50;
const LAST_STEP_MS = 500;

/** Says how a purchase stands: Redis first, because a 202 is there before its row; then MySQL, the last word. */
export class GetPurchase {
  readonly #ports: GetPurchasePorts;
  #waiting = 0;

  constructor(ports: GetPurchasePorts) {
    this.#ports = ports;
  }

  /** @throws OperationalError redis or mysql */
  async get(query: PurchaseQuery): Promise<PurchaseStatus> {
    const { clock } = this.#ports;
    const deadlineMs = clock.nowMs() + query.waitMs;
    let status = await this.#read(query);
    if (status.status !== 'pending' || query.waitMs === 0 || this.#waiting >= WAITERS_MAX) return status;
    this.#waiting++;
    try {
      for (let stepMs = FIRST_STEP_MS; status.status === 'pending'; stepMs = Math.min(stepMs * 1.5, LAST_STEP_MS)) {
        const leftMs = deadlineMs - clock.nowMs();
        if (leftMs <= 0 || query.signal.aborted) break;
        await clock.sleep(Math.min(stepMs, leftMs), query.signal);
        status = await this.#read(query);
      }
      return status;
    } finally {
      this.#waiting--;
    }
  }

  async #read({ saleId, userId, requestId }: PurchaseQuery): Promise<PurchaseStatus> {
    const { cards, ledger, book } = this.#ports;
    const card = await cards.get(saleId);
    const bucket = card.card === 'ready' ? homeBucket(userId, card.sale.buckets) : 0;
    const entry = await ledger.findRequest({ saleId, bucket }, userId, requestId);
    if (entry?.state === 'held') return { status: 'pending' };
    const [row] = await book.findByPurchases(saleId, [{ userId, requestId, quantity: 1 }]);
    if (row) return statusOf(row);
    // The ledger knows an order that the book has lost: reconcile writes it again, so nothing final is said yet.
    if (entry !== null) return { status: 'pending' };
    // Without the card nobody knows the buyer's bucket: "not found" could be said of a purchase that was accepted.
    if (card.card === 'loading') throw new OperationalError('mysql', `sale ${saleId} is loading`, { retryable: true });
    return { status: 'not_found' };
  }
}

/** An order that was cancelled or expired is still an order: the buyer once had it, and hears how it ended. */
export function statusOf(order: Order): PurchaseStatus {
  if (order.state === 'failed') {
    return { status: 'failed', orderId: order.orderId, reason: order.reason ?? 'unknown' };
  }
  return { status: 'ordered', orderId: order.orderId, orderState: order.state };
}
