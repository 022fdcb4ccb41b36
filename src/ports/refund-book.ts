/** `due` until the provider has given the money back. */
export type RefundState = 'due' | 'refunded';

/** Money that is owed back: a payment that could not pay its order. */
export interface Refund {
  readonly paymentId: string;
  readonly orderId: string;
  readonly amountCents: number;
  /** Why: `already_paid`, `wrong_amount` or `order_<state>`. */
  readonly reason: string;
  readonly state: RefundState;
}

/** A refund that is due, lent to us. */
export interface LeasedRefund extends Pick<Refund, 'paymentId' | 'orderId' | 'amountCents'> {
  /** How often it was lent, with this time: 1 for the first. */
  readonly attempts: number;
}

/** What is owed back to buyers. A refund is written with the payment that it is for. Several keepers may work on it. */
export interface RefundBook {
  /**
   * Refunds that are due and lent to nobody, oldest first, at most `max`. They are ours for `leaseMs`; one that is
   * neither done nor postponed by then is due again.
   * @throws OperationalError mysql; some may have been lent, so they come after `leaseMs`
   */
  lease(max: number, leaseMs: number): Promise<LeasedRefund[]>;

  /**
   * The money is back, for ever; again changes nothing.
   * @throws OperationalError mysql
   */
  markRefunded(paymentId: string): Promise<void>;

  /**
   * To be tried again in `delayMs`, with what was wrong, for a person; one that is refunded stays so.
   * @throws OperationalError mysql
   */
  postpone(paymentId: string, delayMs: number, error: string): Promise<void>;

  /**
   * The refunds of one order, oldest first.
   * @throws OperationalError mysql
   */
  refundsOf(orderId: string): Promise<Refund[]>;
}
