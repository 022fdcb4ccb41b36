/** How a charge that was begun ended: the provider took the money, declined, or never heard of it. */
export type AttemptEnd = 'charged' | 'declined' | 'not_charged';
/** How it stands once the provider was asked. */
export type ResolvedAttempt = AttemptEnd | 'open';

/** A charge that may have been made: nothing of ours says yet what came of it. */
export interface OpenAttempt {
  readonly orderId: string;
  /** The key that the provider was given. */
  readonly key: string;
  readonly amountCents: number;
  /** How often it was opened or leased: tells whether it is still the same when it is closed. */
  readonly version: number;
  /** Since it was opened, by the first or a later request with this key. */
  readonly ageMs: number;
}

export type AttemptName = Pick<OpenAttempt, 'orderId' | 'key'>;

/** How many declined charges an order, and a buyer within an hour, may have before no other one begins. */
export interface DeclineBound {
  readonly perOrder: number;
  readonly perBuyerHour: number;
  /** Called where a bound is reached, with the order locked. @returns whether the charge is refused */
  refuses(): boolean;
}

/**
 * - `opened`: this call may charge
 * - `decline_limit_reached`: too many charges of the order or of its buyer were declined
 * - `in_progress`: a charge with another key may have been made or be under way, so nothing else may be charged
 * - `wrong_state`: the order cannot be paid any more
 */
export type OpenOutcome =
  | { readonly outcome: 'opened' }
  | { readonly outcome: 'wrong_state' }
  | { readonly outcome: 'decline_limit_reached' }
  | { readonly outcome: 'in_progress'; readonly other: OpenAttempt };

/**
 * Charges that were begun. Each is written, and committed, before the provider is asked for money: whatever dies then, it is
 * known whom to ask, and with which key. Several keepers may work on them.
 */
export interface PaymentAttempts {
  /**
   * A charge with this key is about to begin, for the first time or again; one key at a time has an order. A keeper asks
   * what came of it after `askAfterMs`.
   * @param bound for keys that were not charged before; null: none. Orders of one buyer that are paid at the same time are not
   *   counted for each other
   * @throws OperationalError mysql; then nothing may be charged
   */
  open(
    orderId: string,
    key: string,
    amountCents: number,
    askAfterMs: number,
    bound?: DeclineBound | null,
  ): Promise<OpenOutcome>;

  /**
   * What the provider said is final, and is recorded where it is money.
   * @param attempt with `version`, it is closed only if it was neither opened nor leased since
   * @throws OperationalError mysql; it may stay open, then a keeper closes it
   */
  close(attempt: AttemptName & { readonly version?: number }, end: AttemptEnd): Promise<void>;

  /**
   * The open attempts of one order, at most ten: releases before 1.1.0 opened an attempt for every key of a buyer.
   * @throws OperationalError mysql
   */
  openOf(orderId: string): Promise<OpenAttempt[]>;

  /**
   * Open ones that are due and not leased, those that are due for longest first, at most `max`; ours for `leaseMs`.
   * @throws OperationalError mysql; some may have been leased, so they come after `leaseMs`
   */
  lease(max: number, leaseMs: number): Promise<OpenAttempt[]>;

  /**
   * To be asked for again in `delayMs`, with what was wrong, for a person.
   * @throws OperationalError mysql
   */
  postpone(attempt: AttemptName, delayMs: number, error: string): Promise<void>;
}
