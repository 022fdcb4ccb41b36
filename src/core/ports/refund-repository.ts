/** `due` until the provider has given the money back, or a person pays it by hand. */
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

/** Money owed back to buyers, stored with its payment, for several keepers. Methods throw OperationalError mysql. */
export interface RefundRepository {
  /** Leases due refunds for `leaseMs`, oldest first. A refund neither done nor postponed by then is due again. */
  lease(max: number, leaseMs: number): Promise<LeasedRefund[]>;

  /** Marks the money as given back, for good. Returns false if another keeper or a person has marked it. */
  markRefunded(paymentId: string): Promise<boolean>;

  /**
   * Makes a refund due again in `delayMs`; `error` is for people. A paid refund stays `refunded`. Does nothing if
   * another keeper has the lease, because it may already be asking the provider.
   */
  postpone(lease: Pick<LeasedRefund, 'paymentId' | 'attempts'>, delayMs: number, error: string): Promise<void>;

  /** Returns the refunds of one order, oldest first. */
  refundsOf(orderId: string): Promise<Refund[]>;

  /** Returns whether the money of this payment is owed back or was given back. */
  has(paymentId: string): Promise<boolean>;
}
