/**
 * Kinds of payment cases.
 * - `unrecorded`: a signed report says that money was taken, but it cannot be recorded
 * - `refund_failed`: money that was on its way back did not arrive
 * - `refunded_elsewhere`: money was given back at the provider, and the amount fits no paid order
 * - `disputed`: the bank of a buyer wants the money back
 * - `refunded_twice`: a refund was marked as done while the provider was making it, so a person may have paid it by
 *   hand as well
 */
export const CASE_KINDS = ['unrecorded', 'refund_failed', 'refunded_elsewhere', 'disputed', 'refunded_twice'] as const;
export type CaseKind = (typeof CASE_KINDS)[number];

/** `open` until a person closes the case, or the provider says that it is over. */
export const CASE_STATES = ['open', 'closed'] as const;
export type CaseState = (typeof CASE_STATES)[number];

/** A money problem that no program can settle. */
export interface FoundCase {
  readonly kind: CaseKind;
  /**
   * Id at the provider, such as the id of a refund, dispute or payment. There is at most one case per kind and subject.
   */
  readonly subject: string;
  /** Null if unknown. */
  readonly paymentId: string | null;
  readonly orderId: string | null;
  /** In the smallest unit of its currency. */
  readonly amountCents: number | null;
  readonly currency: string | null;
  /** Description for people. */
  readonly detail: string;
}

/** Stores money problems that people have to solve: failed refunds, disputes, payments that could not be recorded. */
export interface PaymentCases {
  /**
   * Stores a case. Storing the same report again changes nothing. A report with a different detail sets the given state
   * again, even if a person has closed the case.
   * @throws OperationalError mysql; store the case again
   */
  note(found: FoundCase, state?: CaseState): Promise<void>;

  /**
   * Closes the case of a solved problem, if there is such a case.
   * @throws OperationalError mysql
   */
  settle(kind: CaseKind, subject: string): Promise<void>;

  /**
   * Returns the order of a recorded payment. Null if the payment is not recorded.
   * @throws OperationalError mysql
   */
  orderOf(paymentId: string): Promise<string | null>;
}
