/** `due` until the provider has given the money back, or a person has claimed the refund to pay it by hand. */
export const REFUND_STATES = ['due', 'refunded'] as const;
export type RefundState = (typeof REFUND_STATES)[number];

/** Money that is owed back, for a payment that could not pay its order. */
export interface Refund {
  readonly paymentId: string;
  readonly orderId: string;
  readonly amountCents: number;
  /** The reason: `already_paid`, `wrong_amount`, `wrong_currency` or `order_<state>`. */
  readonly reason: string;
  readonly state: RefundState;
}

/** A due refund that this process has leased. */
export interface LeasedRefund extends Pick<Refund, 'paymentId' | 'orderId' | 'amountCents'> {
  /** Number of leases, including this one. */
  readonly attempts: number;
}

/** Money owed back to buyers. A refund is written together with its payment. Several keepers may work on refunds. */
export interface RefundRepository {
  /**
   * Leases at most `max` due refunds for `leaseMs`, oldest first. A refund that is neither done nor postponed by then
   * is due again.
   * @throws OperationalError mysql; some refunds may be leased and are due again after `leaseMs`
   */
  lease(max: number, leaseMs: number): Promise<LeasedRefund[]>;

  /**
   * Marks the money as given back, permanently. Safe to repeat.
   * @returns false if the refund was no longer due, because another keeper or a person has marked it
   * @throws OperationalError mysql
   */
  markRefunded(paymentId: string): Promise<boolean>;

  /**
   * Makes a refund due again in `delayMs`. `error` says what was wrong, for people. A refund that was paid stays
   * `refunded`. Does nothing if the lease has passed to another keeper, which may already be asking the provider.
   * @param lease as returned by `lease`
   * @throws OperationalError mysql
   */
  postpone(lease: Pick<LeasedRefund, 'paymentId' | 'attempts'>, delayMs: number, error: string): Promise<void>;

  /**
   * Returns the refunds of one order, oldest first.
   * @throws OperationalError mysql
   */
  refundsOf(orderId: string): Promise<Refund[]>;

  /**
   * Returns whether the money of this payment is owed back or was given back.
   * @throws OperationalError mysql
   */
  has(paymentId: string): Promise<boolean>;
}
