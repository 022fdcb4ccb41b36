/**
 * What a case is about.
 * - `unrecorded`: a signed report says that money was taken, and it cannot be recorded
 * - `refund_failed`: money that was on its way back did not arrive
 * - `refunded_elsewhere`: a payment was given back, and not by this system: somebody did it at the provider
 * - `disputed`: the bank of a buyer wants the money back
 * - `refunded_twice`: a refund was marked as done while the provider made it: a person may have paid it by hand as well
 */
export const CASE_KINDS = ['unrecorded', 'refund_failed', 'refunded_elsewhere', 'disputed', 'refunded_twice'] as const;
export type CaseKind = (typeof CASE_KINDS)[number];

/** `open` until a person has dealt with it, or the provider says that it is over. */
export const CASE_STATES = ['open', 'closed'] as const;
export type CaseState = (typeof CASE_STATES)[number];

/** Something about money that no program can settle. */
export interface FoundCase {
  readonly kind: CaseKind;
  /** One case per kind and subject: an id at the provider, such as that of a refund, a dispute or a payment. */
  readonly subject: string;
  /** Null: not known. */
  readonly paymentId: string | null;
  readonly orderId: string | null;
  /** In the smallest unit of its currency. */
  readonly amountCents: number | null;
  readonly currency: string | null;
  /** For a person. */
  readonly detail: string;
}

/** Times are Unix ms on the clock of MySQL. */
export interface PaymentCase extends FoundCase {
  readonly caseId: string;
  readonly state: CaseState;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

/** Every condition that is there must hold. */
export interface CaseFilter {
  readonly state?: CaseState;
}

/** Money that a person has to look after: refunds that failed, disputes, payments that could not be recorded. */
export interface PaymentCases {
  /**
   * Notes a case. The same again changes nothing; with news (another detail) the state is the given one again, also where a person
   * has closed the case.
   * @throws OperationalError mysql; note it again
   */
  note(found: FoundCase, state?: CaseState): Promise<void>;

  /** What the case is about has been settled: closes it, where there is one. @throws OperationalError mysql */
  settle(kind: CaseKind, subject: string): Promise<void>;

  /** The order that a payment was recorded for; null: no such payment was. @throws OperationalError mysql */
  orderOf(paymentId: string): Promise<string | null>;

  /** Oldest first, at most `max`, behind the case `afterCaseId`. @throws OperationalError mysql */
  list(filter: CaseFilter, page: { readonly afterCaseId?: string; readonly max: number }): Promise<PaymentCase[]>;

  /**
   * A person has dealt with a case. In the audit log under the name of `actor`, in the same transaction; closed again, it changes nothing.
   * @returns the case as it now is; null: there is none
   * @throws OperationalError mysql; it may be closed, so ask again
   */
  close(caseId: string, actor: string): Promise<PaymentCase | null>;
}
