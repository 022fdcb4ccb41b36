/** `due` until the provider has given the money back, or a person has taken it on to do so by hand. */
export const REFUND_STATES = ['due', 'refunded'] as const;
export type RefundState = (typeof REFUND_STATES)[number];

/** Money that is owed back: a payment that could not pay its order. */
export interface Refund {
  readonly paymentId: string;
  readonly orderId: string;
  readonly amountCents: number;
  /** Why: `already_paid`, `wrong_amount`, `wrong_currency` or `order_<state>`. */
  readonly reason: string;
  readonly state: RefundState;
}

/** A refund that is due, leased to us. */
export interface LeasedRefund extends Pick<Refund, 'paymentId' | 'orderId' | 'amountCents'> {
  /** How often it was leased, with this time: 1 for the first. */
  readonly attempts: number;
}

/** A refund as an operator sees it. Times are Unix ms on the clock of MySQL. */
export interface StoredRefund extends Refund {
  /** How often the provider was asked. */
  readonly attempts: number;
  /** What was wrong the last time; null: nothing, or it was not tried. */
  readonly lastError: string | null;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

/** Every condition that is there must hold. */
export interface RefundFilter {
  readonly state?: RefundState;
}

/** One page, oldest refund first. */
export interface RefundPage {
  /** Behind the refund of this payment; from the oldest when absent. */
  readonly afterPaymentId?: string;
  readonly max: number;
}

/**
 * - `done`: it was due and is ours to pay by hand, now that no keeper will pay it
 * - `already_refunded`: the provider gave it back, or a person took it on before: nothing is to be paid
 * - `being_asked`: a keeper asks the provider for it right now, which may give it back; ask again in a minute
 */
export type TakeOnOutcome =
  | { readonly outcome: 'done' | 'already_refunded' | 'being_asked'; readonly refund: StoredRefund }
  | { readonly outcome: 'not_found' };

/** What is owed back to buyers. A refund is written with the payment that it is for. Several keepers may work on it. */
export interface RefundRepository {
  /**
   * Refunds that are due and not leased, oldest first, at most `max`. They are ours for `leaseMs`; one that is
   * neither done nor postponed by then is due again.
   * @throws OperationalError mysql; some may have been leased, so they come after `leaseMs`
   */
  lease(max: number, leaseMs: number): Promise<LeasedRefund[]>;

  /**
   * The money is back, for ever; again changes nothing.
   * @returns false when it was not due any more: another keeper or a person has marked it
   * @throws OperationalError mysql
   */
  markRefunded(paymentId: string): Promise<boolean>;

  /**
   * To be tried again in `delayMs`, with what was wrong, for a person; one that is refunded stays so. Nothing where the
   * lease has passed to another keeper, which asks the provider by now.
   * @param lease as it was taken
   * @throws OperationalError mysql
   */
  postpone(lease: Pick<LeasedRefund, 'paymentId' | 'attempts'>, delayMs: number, error: string): Promise<void>;

  /**
   * The refunds of one order, oldest first.
   * @throws OperationalError mysql
   */
  refundsOf(orderId: string): Promise<Refund[]>;

  /** Whether the money of this payment is owed back, or was given back. @throws OperationalError mysql */
  has(paymentId: string): Promise<boolean>;

  /** @throws OperationalError mysql */
  list(filter: RefundFilter, page: RefundPage): Promise<StoredRefund[]>;

  /**
   * A person takes a refund on, before they pay it by hand, so that the keeper does not pay it too. In the audit log under
   * the name of `actor`, in the same transaction.
   * @throws OperationalError mysql; it may be done, so check before anything is paid
   */
  takeOn(paymentId: string, actor: string): Promise<TakeOnOutcome>;
}
