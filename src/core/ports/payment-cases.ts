/**
 * - `unrecorded`: a signed report says that money was taken, but it cannot be recorded
 * - `refund_failed`: money on its way back did not arrive
 * - `refunded_elsewhere`: given back at the provider, and the amount fits no paid order
 * - `disputed`: the bank of a buyer wants the money back
 * - `refunded_twice`: marked as done while the provider was refunding, so a person may have paid by hand as well
 */
export const CASE_KINDS = ['unrecorded', 'refund_failed', 'refunded_elsewhere', 'disputed', 'refunded_twice'] as const;
export type CaseKind = (typeof CASE_KINDS)[number];

/** `open` until a person closes the case, or the provider says that it is over. */
export const CASE_STATES = ['open', 'closed'] as const;
export type CaseState = (typeof CASE_STATES)[number];

/** A money problem that no program can settle. */
export interface FoundCase {
  readonly kind: CaseKind;
  /** Id of a refund, dispute or payment at the provider. There is at most one case per kind and subject. */
  readonly subject: string;
  /** Null if unknown. */
  readonly paymentId: string | null;
  readonly orderId: string | null;
  /** In the smallest unit of its currency. */
  readonly amountCents: number | null;
  readonly currency: string | null;
  readonly detail: string;
}

/** Stores money problems for people, such as failed refunds and disputes. Methods throw OperationalError mysql. */
export interface PaymentCases {
  /** Stores a case. An equal report changes nothing. A new detail sets the state again, even of a closed case. */
  note(found: FoundCase, state?: CaseState): Promise<void>;

  /** Closes the case of a solved problem, if there is one. */
  settle(kind: CaseKind, subject: string): Promise<void>;

  /** Returns the order of a recorded payment, or null. */
  orderOf(paymentId: string): Promise<string | null>;
}
