import type { OrderState } from '../order.js';
/** A payment as its provider knows it. */
export interface Payment {
  /** Id at the provider; the same payment reported twice has the same one. */
  readonly paymentId: string;
  readonly amountCents: number;
  /** Of the amount, where the provider says it; without it, that of the order. */
  readonly currency?: string;
}

/**
 * - `paid`: the order is paid, by this payment, now or when it was reported before
 * - `refund_due`: the money came for an order that had ended, was paid before, or costs something else,
 *   or is in another currency; a `refunds` row
 *   owes it back
 * - `payment_conflict`: this payment was reported before with another order or amount; nothing was changed
 */
export type PayOutcome = 'paid' | 'refund_due' | 'not_found' | 'payment_conflict';

/**
 * - `cancelled`: now or before
 * - `wrong_state`: it was paid, has expired or failed; nothing was changed
 */
export type CancelOutcome = 'cancelled' | 'wrong_state' | 'not_found';

/**
 * Moves of orders that exist, along the arrows of `ORDER_TRANSITIONS`. Each is one conditional UPDATE: of two moves of
 * one order at the same moment exactly one wins. State, `sales.sold` and the outbox rows that follow from the move
 * (`orders_moved`, and `release` where units go back) are one transaction. MySQL time rules.
 */
export interface OrderTransitions {
  /** @throws OperationalError mysql; the payment may have been recorded, so report it again */
  pay(orderId: string, payment: Payment): Promise<PayOutcome>;

  /** @throws OperationalError mysql; the order may have been cancelled, so ask again */
  cancel(orderId: string): Promise<CancelOutcome>;

  /**
   * Ends those of these orders that are unpaid and past their deadline, on the clock of MySQL and on ours; all others are left alone.
   * @returns how many it ended
   * @throws OperationalError mysql; some may have ended, so ask again
   */
  expire(orderIds: readonly string[]): Promise<number>;

  /**
   * The same for whatever is due, oldest first, at most `max`; orders that another transaction is moving are skipped.
   * @throws OperationalError mysql; some may have ended
   */
  expireDue(max: number): Promise<number>;
}

/** Unpaid orders that should have ended by now; MySQL time. */
export interface OverdueOrders {
  /**
   * How many there are, and how long ago the oldest should have ended (0 when there is none).
   * @throws OperationalError mysql
   */
  overdue(): Promise<{ readonly orders: number; readonly oldestMs: number }>;
}

/** The present state of orders. */
export interface OrderStates {
  /**
   * @returns order id → state; an order that is not there is absent
   * @throws OperationalError mysql
   */
  statesOf(orderIds: readonly string[]): Promise<Map<string, OrderState>>;

  /**
   * Those of these orders that are unpaid and past their deadline, on the time of MySQL.
   * @throws OperationalError mysql
   */
  dueOf(orderIds: readonly string[]): Promise<string[]>;
}
