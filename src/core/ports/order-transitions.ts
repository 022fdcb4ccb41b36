import type { OrderState } from '../order.js';
/** A payment as its provider knows it. */
export interface Payment {
  /** Id at the provider. If a payment is reported twice, both reports have the same id. */
  readonly paymentId: string;
  readonly amountCents: number;
  /** Currency of the amount, if the provider names it. If absent, the currency of the order. */
  readonly currency?: string;
}

/**
 * - `paid`: this payment paid the order, now or at an earlier report
 * - `refund_due`: the order had ended, was paid before, or has another price or currency; a row of `refunds` is due
 * - `payment_conflict`: reported before with another order or amount; nothing was changed
 * - `coupon_missing`: less than the order costs, and no coupon explains it; nothing was changed
 */
export type PayOutcome = 'paid' | 'refund_due' | 'not_found' | 'payment_conflict' | 'coupon_missing';

/** `cancelled`: by this call or before. `wrong_state`: paid, expired or failed; nothing was changed. */
export type CancelOutcome = 'cancelled' | 'wrong_state' | 'not_found';

/**
 * Moves orders along `ORDER_TRANSITIONS`. Each move is one conditional UPDATE, so of two competing moves exactly one
 * wins. State, `sales.sold` and the outbox rows (`orders_moved`, and `release` if units go back) are written in one
 * transaction. The time of MySQL decides. Methods throw OperationalError mysql; the move may be made, so call again.
 */
export interface OrderTransitions {
  pay(orderId: string, payment: Payment): Promise<PayOutcome>;

  cancel(orderId: string): Promise<CancelOutcome>;

  /** Expires the orders that are unpaid and past their deadline by MySQL's clock and ours. Returns their number. */
  expire(orderIds: readonly string[]): Promise<number>;

  /** Expires at most `max` due orders, oldest first. Skips orders that another transaction is moving. */
  expireDue(max: number): Promise<number>;
}

/** Reads the current state of orders. Methods throw OperationalError mysql. */
export interface OrderStates {
  /** Returns states by order id. Missing orders are absent. */
  statesOf(orderIds: readonly string[]): Promise<Map<string, OrderState>>;

  /** Returns the orders that are unpaid and past their deadline, by the time of MySQL. */
  dueOf(orderIds: readonly string[]): Promise<string[]>;
}
