import type { CouponRefusal } from '../coupon.js';

/** How a charge ended: the provider took the money, declined, or never heard of the charge. */
export type AttemptEnd = 'charged' | 'declined' | 'not_charged';
/** The state of a charge once the provider has answered. */
export type ResolvedAttempt = AttemptEnd | 'open';

/** A charge that may have been made, but whose result is not known yet. */
export interface OpenAttempt {
  readonly orderId: string;
  /** The key given to the provider. */
  readonly key: string;
  readonly amountCents: number;
  /** How often the attempt has been opened or leased. `close` uses it to see whether the attempt is unchanged. */
  readonly version: number;
  /** Time since a request with this key last opened the attempt, ms. */
  readonly ageMs: number;
}

export type AttemptName = Pick<OpenAttempt, 'orderId' | 'key'>;

/** Maximum number of declined charges, per order and per buyer within an hour. After that, no further charge begins. */
export interface DeclineBound {
  readonly perOrder: number;
  readonly perBuyerHour: number;
  /** Called with the order locked when a bound is reached. @returns whether the charge is refused */
  refuses(): boolean;
}

/** A coupon that an order wants to use, and its discount. The caller has checked that the order may use the coupon. */
export interface CouponUse {
  readonly code: string;
  readonly discountCents: number;
}

/**
 * - `opened`: this call may charge
 * - `paid`: the coupon covers the whole amount, so the order is paid without a charge
 * - `coupon_refused`: the coupon was used in the meantime, or the key belongs to a charge of another amount
 * - `decline_limit_reached`: too many declined charges of the order or its buyer
 * - `in_progress`: a charge with another key may be under way or made, so no other may begin
 * - `wrong_state`: the order can no longer be paid
 */
export type OpenOutcome =
  | { readonly outcome: 'opened' }
  | { readonly outcome: 'paid' }
  | { readonly outcome: 'coupon_refused'; readonly why: CouponRefusal }
  | { readonly outcome: 'wrong_state' }
  | { readonly outcome: 'decline_limit_reached' }
  | { readonly outcome: 'in_progress'; readonly other: OpenAttempt };

/**
 * Charges that were begun. Each attempt is committed before the provider is asked for money, so after a crash it is
 * known which provider to ask, and with which key. Several keepers may work on them. Methods throw OperationalError
 * mysql.
 */
export interface PaymentAttempts {
  /**
   * Opens an attempt: a charge with this key is about to begin, for the first time or again. An order has only one open
   * key at a time. After `askAfterMs`, a keeper asks for the result. After an error, nothing may be charged.
   * @param bound for keys that were not charged before; null: no bound. Concurrent charges of a buyer do not count each
   * other
   * @param coupon reserved in the same transaction; `amountCents` is the rest. Null: no coupon
   */
  open(
    orderId: string,
    key: string,
    amountCents: number,
    askAfterMs: number,
    bound?: DeclineBound | null,
    coupon?: CouponUse | null,
  ): Promise<OpenOutcome>;

  /**
   * Ends an attempt once the provider's answer is final and any money is recorded. Frees a reserved coupon. After an
   * error, a keeper closes it.
   * @param attempt with a `version`, only if neither opened nor leased since
   */
  close(attempt: AttemptName & { readonly version?: number }, end: AttemptEnd): Promise<void>;

  /** Returns at most ten attempts. Releases before 1.1.0 opened an attempt for every key of a buyer. */
  openOf(orderId: string): Promise<OpenAttempt[]>;

  /** Leases due attempts for `leaseMs`, longest overdue first. */
  lease(max: number, leaseMs: number): Promise<OpenAttempt[]>;

  /** Makes an attempt due again in `delayMs`. `error` is for people. */
  postpone(attempt: AttemptName, delayMs: number, error: string): Promise<void>;
}
