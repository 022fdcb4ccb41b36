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
 * - `refund_due`: the order had ended, was paid before, or has another price or currency; the money is owed back, and a
 *   `refunds` row says so
 * - `payment_conflict`: this payment was reported before with another order or amount; nothing was changed
 * - `coupon_missing`: the amount is smaller than the order costs, and no coupon explains it; nothing was changed
 */
export type PayOutcome = 'paid' | 'refund_due' | 'not_found' | 'payment_conflict' | 'coupon_missing';

/**
 * - `cancelled`: by this call or before
 * - `wrong_state`: the order is paid, expired or failed; nothing was changed
 */
export type CancelOutcome = 'cancelled' | 'wrong_state' | 'not_found';

/**
 * Moves existing orders along the arrows of `ORDER_TRANSITIONS`. Each move is one conditional UPDATE, so if two moves
 * of one order compete, exactly one wins. The state, `sales.sold` and the outbox rows that the move requires
 * (`orders_moved`, and `release` if units go back) are written in one transaction. The time of MySQL decides.
 */
export interface OrderTransitions {
  /** @throws OperationalError mysql; the payment may have been recorded, so report it again */
  pay(orderId: string, payment: Payment): Promise<PayOutcome>;

  /** @throws OperationalError mysql; the order may have been cancelled, so call again */
  cancel(orderId: string): Promise<CancelOutcome>;

  /**
   * Expires the orders in this list that are unpaid and past their deadline, by the clock of MySQL as well as by ours.
   * Leaves all other orders alone.
   * @returns the number of expired orders
   * @throws OperationalError mysql; some orders may have expired, so call again
   */
  expire(orderIds: readonly string[]): Promise<number>;

  /**
   * Expires at most `max` due orders, oldest first. Skips orders that another transaction is moving.
   * @throws OperationalError mysql; some orders may have expired
   */
  expireDue(max: number): Promise<number>;
}

/** Reads the current state of orders. */
export interface OrderStates {
  /**
   * @returns order id → state; an order that does not exist is absent
   * @throws OperationalError mysql
   */
  statesOf(orderIds: readonly string[]): Promise<Map<string, OrderState>>;

  /**
   * Returns which of these orders are unpaid and past their deadline, by the time of MySQL.
   * @throws OperationalError mysql
   */
  dueOf(orderIds: readonly string[]): Promise<string[]>;
}
