import { OperationalError } from '../../../src/core/errors.js';
import { isUnpaid, type Order } from '../../../src/core/order.js';
import { type Sale } from '../../../src/core/sale.js';
import { homeBucket } from '../../../src/core/bucket.js';
import type { Clock } from '../../../src/core/ports/clock.js';
import type {
  CancelOutcome,
  OrderTransitions,
  Payment,
  PayOutcome,
} from '../../../src/core/ports/order-transitions.js';
import type { PurchaseMove } from '../../../src/core/ports/outbox.js';
import type { MemoryRepositories } from './memory-repositories.js';

/** Faults that a test can inject. With `…_reply_lost` the change is still made. */
export type TransitionFault = 'pay_fails' | 'pay_reply_lost' | 'cancel_fails' | 'expire_fails';

export interface MemoryPayment extends Payment {
  readonly orderId: string;
  /** The reason why the money is owed back, or null if it paid the order. */
  readonly refund: string | null;
}

/** Changes states of the orders in `MemoryRepositories`, on its clock. Each call is atomic, like a transaction. */
export class MemoryOrderTransitions implements OrderTransitions {
  readonly payments = new Map<string, MemoryPayment>();
  readonly #repositories: MemoryRepositories;
  readonly #clock: Clock;
  readonly #faults: TransitionFault[] = [];

  /** @param clock of the callers; the repositories use the clock of MySQL */
  constructor(repositories: MemoryRepositories, clock: Clock = repositories.clock) {
    this.#repositories = repositories;
    this.#clock = clock;
  }

  /** Injects faults for the next call of each kind. Several faults of one kind hit successive calls. */
  breakNext(...faults: TransitionFault[]): void {
    this.#faults.push(...faults);
  }

  async pay(orderId: string, payment: Payment): Promise<PayOutcome> {
    this.#failOn('pay_fails');
    const order = this.#find(orderId);
    if (order === undefined) return 'not_found';
    const { paymentId, amountCents, currency } = payment;
    const known = this.payments.get(paymentId);
    if (known !== undefined) {
      if (known.orderId !== orderId || known.amountCents !== amountCents) return 'payment_conflict';
      return known.refund === null ? 'paid' : 'refund_due';
    }
    const isForeign = currency !== undefined && this.#repositories.saleOf(order.saleId)?.currency !== currency;
    const refund = refundReason(order, amountCents, isForeign);
    this.payments.set(paymentId, { paymentId, amountCents, orderId, refund });
    if (refund === null) this.#move([order], 'paid');
    this.#failOn('pay_reply_lost');
    return refund === null ? 'paid' : 'refund_due';
  }

  async cancel(orderId: string): Promise<CancelOutcome> {
    this.#failOn('cancel_fails');
    const order = this.#find(orderId);
    if (order === undefined) return 'not_found';
    if (order.state === 'cancelled') return 'cancelled';
    if (!isUnpaid(order.state)) return 'wrong_state';
    this.#move([order], 'cancelled');
    return 'cancelled';
  }

  async expire(orderIds: readonly string[]): Promise<number> {
    this.#failOn('expire_fails');
    return this.#move(
      this.#expiring().filter((order) => orderIds.includes(order.orderId)),
      'expired',
    );
  }

  async expireDue(max: number): Promise<number> {
    this.#failOn('expire_fails');
    return this.#move(this.#expiring().slice(0, max), 'expired');
  }

  /** Returns orders due on the clocks of both MySQL and the caller. */
  #expiring(): Order[] {
    return this.#due().filter(({ expiresAtMs }) => Number(expiresAtMs) <= this.#clock.nowMs());
  }

  /** Returns due orders, oldest deadline first. */
  #due(): Order[] {
    const nowMs = this.#repositories.clock.nowMs();
    return this.#repositories.allOrders
      .filter(({ state, expiresAtMs }) => isUnpaid(state) && expiresAtMs !== null && expiresAtMs <= nowMs)
      .sort((a, b) => Number(a.expiresAtMs) - Number(b.expiresAtMs));
  }

  #find(orderId: string): Order | undefined {
    return this.#repositories.allOrders.find((order) => order.orderId === orderId);
  }

  #move(orders: readonly Order[], move: PurchaseMove): number {
    for (const saleId of new Set(orders.map((order) => order.saleId))) {
      const ofSale = orders.filter((order) => order.saleId === saleId);
      const key = ofSale[0]?.orderId ?? '';
      this.#repositories.outbox.add('orders_moved', key, {
        move,
        saleId,
        orders: ofSale.map(({ orderId }) => orderId),
        ...this.#repositories.metadataOf(ofSale.map(({ orderId }) => orderId)),
      });
      if (move === 'paid') {
        for (const order of ofSale)
          this.#repositories.putOrder({ ...order, state: move, paidAtMs: this.#repositories.clock.nowMs() });
        continue;
      }
      this.giveBack(ofSale, move);
    }
    return orders.length;
  }

  /** Ends orders of one sale and promises their units back. */
  giveBack(orders: readonly Order[], state: 'cancelled' | 'expired' | 'returned'): void {
    const { saleId = '', orderId: key = '' } = orders[0] ?? {};
    for (const { orderId } of orders) this.#repositories.endOrder(orderId, state);
    const { buckets } = this.#repositories.saleOf(saleId) as Sale;
    const releases = orders.map(({ userId, requestId, orderId }) => ({
      saleId,
      bucket: homeBucket(userId, buckets),
      userId,
      requestId,
      orderId,
      batchId: '',
      withUnits: true,
    }));
    this.#repositories.outbox.add('release', key, releases);
  }

  #failOn(fault: TransitionFault): void {
    const at = this.#faults.indexOf(fault);
    if (at < 0) return;
    this.#faults.splice(at, 1);
    throw new OperationalError('mysql', `fault of the test: ${fault}`, { retryable: true });
  }
}

function refundReason(order: Order, amountCents: number, isForeign: boolean): string | null {
  if (!isUnpaid(order.state)) return order.state === 'paid' ? 'already_paid' : `order_${order.state}`;
  if (isForeign) return 'wrong_currency';
  return order.amountCents === amountCents ? null : 'wrong_amount';
}
