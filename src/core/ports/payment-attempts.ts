import type { CouponRefusal } from '../coupon.js';

/** The end of a charge: the provider took the money, declined, or never heard of the charge. */
export type AttemptEnd = 'charged' | 'declined' | 'not_charged';
/** The state of a charge once the provider was asked. */
export type ResolvedAttempt = AttemptEnd | 'open';

/** A charge that may have been made: we do not know the result yet. */
export interface OpenAttempt {
  readonly orderId: string;
  /** The key given to the provider. */
  readonly key: string;
  readonly amountCents: number;
  /** How often the attempt was opened or leased. Shows on close whether the attempt is unchanged. */
  readonly version: number;
  /** Time since a request with this key last opened the attempt, ms. */
  readonly ageMs: number;
}

export type AttemptName = Pick<OpenAttempt, 'orderId' | 'key'>;

/** Maximum number of declined charges of an order, and of a buyer within an hour. Then no further charge begins. */
export interface DeclineBound {
  readonly perOrder: number;
  readonly perBuyerHour: number;
  /** Called when a bound is reached, with the order locked. @returns whether the charge is refused */
  refuses(): boolean;
}

/** A coupon that an order wants to use, and what it takes off. The caller has checked that the order may use it. */
export interface CouponUse {
  readonly code: string;
  readonly discountCents: number;
}

/**
 * - `opened`: this call may charge
 * - `paid`: the coupon takes off the whole amount, so the order is paid without a charge
 * - `coupon_refused`: the coupon was used meanwhile, or the key belongs to a charge with another amount
 * - `decline_limit_reached`: too many charges of the order or of its buyer were declined
 * - `in_progress`: a charge with another key may be made or under way, so no other charge may begin
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
 * Charges that were begun. Each attempt is committed before the provider is asked for money. So after any crash it is
 * known which provider to ask, and with which key. Several keepers may work on the attempts.
 */
export interface PaymentAttempts {
  /**
   * Opens an attempt: a charge with this key is about to begin, for the first time or again. An order has one open key
   * at a time. A keeper asks for the result after `askAfterMs`.
   * @param bound applies to keys that were not charged before; null: no bound. Concurrent charges of one buyer do not
   *   count each other
   * @param coupon is reserved in the same transaction; `amountCents` is what it leaves. Null: no coupon
   * @throws OperationalError mysql; then nothing may be charged
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
   * Closes an attempt, once the answer of the provider is final and any money is recorded. A coupon that it has reserved
   * becomes free.
   * @param attempt with `version`, closes the attempt only if it was neither opened nor leased since
   * @throws OperationalError mysql; the attempt may stay open, then a keeper closes it
   */
  close(attempt: AttemptName & { readonly version?: number }, end: AttemptEnd): Promise<void>;

  /**
   * Returns the open attempts of one order, at most ten: releases before 1.1.0 opened an attempt for every key of a
   * buyer.
   * @throws OperationalError mysql
   */
  openOf(orderId: string): Promise<OpenAttempt[]>;

  /**
   * Leases due open attempts for `leaseMs`, longest overdue first, at most `max`.
   * @throws OperationalError mysql; some attempts may be leased and are due again after `leaseMs`
   */
  lease(max: number, leaseMs: number): Promise<OpenAttempt[]>;

  /**
   * Makes an attempt due again in `delayMs`. `error` says what was wrong, for people.
   * @throws OperationalError mysql
   */
  postpone(attempt: AttemptName, delayMs: number, error: string): Promise<void>;
}
