import { mayMove, type Order, type OrderState } from '../../../src/core/order.js';
import type {
  LeasedOrderRefund,
  OrderRefund,
  OrderRefunds,
  RefundOrdered,
  RefundWish,
} from '../../../src/core/ports/order-refunds.js';
import type { MoneyMove } from '../../../src/core/ports/outbox.js';
import type { Clock } from '../../../src/core/ports/clock.js';
import type { MemoryOrderTransitions } from './memory-order-transitions.js';
import type { MemoryRepositories } from './memory-repositories.js';
import { isWaitOver } from './wait-over.js';

type Stored = { -readonly [K in keyof OrderRefund]: OrderRefund[K] } & { availableAtMs: number };

/** Refunds of the orders in `MemoryRepositories`. Each call is atomic, like a transaction. */
export class MemoryOrderRefunds implements Pick<
  OrderRefunds,
  'order' | 'refundsOf' | 'lease' | 'settle' | 'refuse' | 'postpone'
> {
  readonly rows: Stored[] = [];
  readonly #transitions: MemoryOrderTransitions;
  readonly #repositories: MemoryRepositories;
  readonly #clock: Clock;

  constructor(transitions: MemoryOrderTransitions, repositories: MemoryRepositories, clock: Clock) {
    this.#transitions = transitions;
    this.#repositories = repositories;
    this.#clock = clock;
  }

  async order(orderId: string, wish: RefundWish, actor: string): Promise<RefundOrdered> {
    const order = this.#find(orderId);
    if (order === undefined) return { outcome: 'not_found' };
    const due = this.rows.find((row) => row.orderId === orderId && row.state === 'due');
    if (due !== undefined) return { outcome: 'in_progress', refund: due };
    const leftCents = order.amountCents - order.refundedCents;
    const { amountCents = leftCents, restock, reason } = wish;
    if (!mayMove(order.state, 'refunding')) return { outcome: 'wrong_state', state: order.state };
    if (amountCents > leftCents || (order.state === 'refunded' && leftCents === 0))
      return { outcome: 'too_much', leftCents };
    if (restock && this.#isClosed(order)) return { outcome: 'sale_closed' };
    const payment = [...this.#transitions.payments.values()].find(
      (one) => one.orderId === orderId && one.refund === null,
    );
    const refundId = String(this.rows.length + 1);
    const refund: Stored = {
      ...{ refundId, orderId, paymentId: payment?.paymentId ?? '', key: wish.key ?? refundId, amountCents, restock },
      ...{ reason, actor, state: 'due', attempts: 0, lastError: null, followedBy: null },
      ...{ createdAtMs: this.#clock.nowMs(), availableAtMs: this.#clock.nowMs() },
    };
    this.rows.push(refund);
    this.#move(order, 'refunding', 'refunding');
    return { outcome: 'refunding', refund };
  }

  async refundsOf(orderId: string): Promise<OrderRefund[]> {
    return this.rows.filter((row) => row.orderId === orderId);
  }

  async lease(max: number, leaseMs: number): Promise<LeasedOrderRefund[]> {
    const nowMs = this.#clock.nowMs();
    const due = this.rows.filter((row) => row.state === 'due' && isWaitOver(row.availableAtMs, nowMs)).slice(0, max);
    return due.map((row) => {
      row.availableAtMs = nowMs + leaseMs;
      const { refundId, orderId, paymentId, amountCents } = row;
      return { refundId, orderId, paymentId, amountCents, currency: 'EUR', attempts: ++row.attempts };
    });
  }

  async settle(refundId: string): Promise<boolean> {
    const [row, order] = this.#due(refundId);
    if (row === undefined || order === undefined) return false;
    const refundedCents = order.refundedCents + row.amountCents;
    row.state = 'refunded';
    const returns = refundedCents === order.amountCents && row.restock && !this.#isClosed(order);
    const to = returns ? 'returned' : 'refunded';
    this.#move({ ...order, refundedCents }, to, to);
    return true;
  }

  async refuse(refundId: string, error: string): Promise<void> {
    const [row, order] = this.#due(refundId);
    if (row === undefined || order === undefined) return;
    Object.assign(row, { state: 'failed', lastError: error });
    this.#move(order, 'refund_failed', order.refundedCents > 0 ? 'refunded' : 'paid');
  }

  async postpone(
    { refundId, attempts }: Pick<LeasedOrderRefund, 'refundId' | 'attempts'>,
    delayMs: number,
    error: string,
  ): Promise<void> {
    const [row] = this.#due(refundId);
    if (row?.attempts === attempts) {
      Object.assign(row, { availableAtMs: this.#clock.nowMs() + delayMs, lastError: error });
    }
  }

  #due(refundId: string): [Stored | undefined, Order | undefined] {
    const row = this.rows.find((one) => one.refundId === refundId && one.state === 'due');
    return [row, row === undefined ? undefined : this.#find(row.orderId)];
  }

  #find(orderId: string): Order | undefined {
    return this.#repositories.allOrders.find((order) => order.orderId === orderId);
  }

  #isClosed = ({ saleId }: Order): boolean => this.#repositories.saleOf(saleId)?.state === 'closed';

  #move(order: Order, move: MoneyMove, to: OrderState): void {
    const { orderId, saleId } = order;
    const metadata = this.#repositories.metadataOf([orderId]);
    this.#repositories.outbox.add('orders_moved', orderId, { move, saleId, orders: [orderId], ...metadata });
    this.#repositories.putOrder(order);
    if (to === 'returned') this.#transitions.giveBack([order], 'returned');
    else this.#repositories.putOrder({ ...order, state: to });
  }
}
