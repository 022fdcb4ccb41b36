import type { OrderState } from '../order.js';
/** A payment as its provider knows it. */
export interface Payment {
  /** Id at the provider. A payment that is reported twice has the same id both times. */
  readonly paymentId: string;
  readonly amountCents: number;
  /** Currency of the amount, if the provider names it. Absent: the currency of the order. */
  readonly currency?: string;
}

/**
 * - `paid`: this payment paid the order, now or at an earlier report
 * - `refund_due`: the order had ended, was paid before, or has another price or currency; a `refunds` row owes the
 *   money back
 * - `payment_conflict`: this payment was reported before with another order or amount; nothing was changed
 * - `coupon_missing`: the amount is smaller than the order costs, and no coupon explains it; nothing was changed
 */
export type PayOutcome = 'paid' | 'refund_due' | 'not_found' | 'payment_conflict' | 'coupon_missing';

/**
 * - `cancelled`: now or before
 * - `wrong_state`: the order is paid, expired or failed; nothing was changed
 */
export type CancelOutcome = 'cancelled' | 'wrong_state' | 'not_found';

/**
 * Moves existing orders along the arrows of `ORDER_TRANSITIONS`. Each move is one conditional UPDATE: of two moves of
 * one order at the same moment, exactly one wins. State, `sales.sold` and the outbox rows that follow from the move
 * (`orders_moved`, and `release` where units go back) are one transaction. MySQL time decides.
 */
export interface OrderTransitions {
  /** @throws OperationalError mysql; the payment may have been recorded, so report it again */
  pay(orderId: string, payment: Payment): Promise<PayOutcome>;

  /** @throws OperationalError mysql; the order may have been cancelled, so ask again */
  cancel(orderId: string): Promise<CancelOutcome>;

  /**
   * Expires the orders that are unpaid and past their deadline, on the clock of MySQL and on our own. Leaves all other
   * orders alone.
   * @returns the number of expired orders
   * @throws OperationalError mysql; some orders may have expired, so ask again
   */
  expire(orderIds: readonly string[]): Promise<number>;

  /**
   * Expires due orders, oldest first, at most `max`. Skips orders that another transaction is moving.
   * @throws OperationalError mysql; some orders may have expired
   */
  expireDue(max: number): Promise<number>;
}

/** The present state of orders. */
export interface OrderStates {
  /**
   * @returns order id → state; an order that does not exist is absent
   * @throws OperationalError mysql
   */
  statesOf(orderIds: readonly string[]): Promise<Map<string, OrderState>>;

  /**
   * Returns the orders that are unpaid and past their deadline, on MySQL time.
   * @throws OperationalError mysql
   */
  dueOf(orderIds: readonly string[]): Promise<string[]>;
}
