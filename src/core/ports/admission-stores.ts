import type { Dependency } from '../errors.js';
import type { LimitSet, LimitVerdict } from '../limits.js';

export const BREAKER_STATES = ['closed', 'open', 'half_open'] as const;
export type BreakerState = (typeof BREAKER_STATES)[number];

/** State of the breakers of one process, by its own calls only. */
export type BreakerReport = Readonly<Record<Dependency, BreakerState>>;

export interface LiveReport {
  readonly processId: string;
  readonly report: BreakerReport;
}

/** Where every process reports its breakers and reads those of the others. */
export interface BreakerStore {
  /**
   * Writes the report of this process, in place of its last one, and reads those of all live processes, its own too.
   * A report that cannot be read (another release wrote it) counts as a live process whose breakers are closed.
   * @param lifeMs after so long without another report, on the clock of the store, the process is not live any more
   * @returns at most 1000 reports, in no order
   * @throws OperationalError redis
   * Source: lua/report-breakers-2.lua
   */
  exchange(processId: string, report: BreakerReport, lifeMs: number): Promise<readonly LiveReport[]>;

  /**
   * Removes the report: the process ends. Nothing happens when there is none.
   * @throws OperationalError redis
   */
  withdraw(processId: string): Promise<void>;
}

/** Who sent a request; null: not known, so that limit does not count it. */
export interface LimitCaller {
  readonly address: string | null;
  readonly userId: string | null;
}

/** Requests to one endpoint under one set of limits. */
export interface LimitCall {
  readonly endpoint: string;
  readonly limits: LimitSet;
  readonly callers: readonly LimitCaller[];
}

export interface LimitAnswers {
  /** One per request, in their order. */
  readonly verdicts: readonly LimitVerdict[];
  /** How often a user or an address was not counted, because too many others were. */
  readonly uncounted: number;
}

/** Counts requests. One that a limit refuses takes from none of them. */
export interface LimitStore {
  /**
   * @param call 1 to `LIMIT_CALLERS_MAX` requests, decided one after the other
   * @throws OperationalError redis; they may have been counted or not
   * Source: lua/take-permits-5.lua
   */
  take(call: LimitCall): Promise<LimitAnswers>;
}

/** Requests in one call, at most: few enough to keep Redis busy for no more than a few milliseconds. */
export const LIMIT_CALLERS_MAX = 128;

/** `outdated`: it was signed before the store may have forgotten nonces, so that nobody knows whether this one was used. */
export type NonceTaken = 'fresh' | 'used' | 'outdated';

/** Remembers which nonces were used, for all processes together. */
export interface NonceStore {
  /**
   * Takes a nonce for `lifeMs`; of many who try at once, one gets it.
   * @param keyId, nonce 1 to 64 characters of A-Z a-z 0-9 _ -; each key has nonces of its own
   * @param times `signedAtMs`: when the request says that it was signed, Unix ms
   * @returns `fresh` for the first, `used` for all later ones
   * @throws OperationalError redis; the nonce may be taken or not
   * Source: lua/take-nonce-2.lua
   */
  take(
    keyId: string,
    nonce: string,
    times: { readonly lifeMs: number; readonly signedAtMs: number },
  ): Promise<NonceTaken>;
}

/** How many tokens of a sale there are, and when they are issued. Times in Unix ms. */
export interface TokenIssue {
  readonly saleId: string;
  /** First moment. */
  readonly fromMs: number;
  /** First moment at which it is too late. */
  readonly untilMs: number;
  /** The life of a token begins then, or when it is issued. */
  readonly opensAtMs: number;
  readonly lifeMs: number;
  /** Tokens whose life has not ended, at a time. */
  readonly tokensMax: number;
  /** Tokens of one buyer, one after the other. */
  readonly perBuyer: number;
  /** Tokens of one address that are neither redeemed nor ended, at a time; null: any number. */
  readonly perAddress: number | null;
}

/** A buyer, and where they ask from: what their address counts as; null: not known, so it is not counted. */
export interface TokenBuyer {
  readonly userId: string;
  readonly address: string | null;
}

/**
 * - `issued`, `issued_before`: the buyer has a token, now or already; with its end. One that was redeemed may have ended
 * - `buyer_limit`: the buyer let `perBuyer` tokens lapse
 * - `address_limit`, `none_left`: no token is free; with the time when the first one is
 * - `too_early`, `too_late`
 */
export type Issued =
  | 'too_early'
  | 'too_late'
  | 'issued_before'
  | 'buyer_limit'
  | 'address_limit'
  | 'none_left'
  | 'issued';

/** `redeemed_before`: for this very purchase, so it is no second use. */
export type Redeemed = 'redeemed_before' | 'redeemed_for_another' | 'ended' | 'redeemed';

/**
 * Who has a purchase token of a sale, and for which purchase it was redeemed. Bounded: by the tokens of the sale at a time,
 * as many that lapsed, and those that were redeemed.
 */
export interface PurchaseTokenStore {
  /**
   * Notes that a buyer gets a token. Safe to repeat: until its end it stays the same.
   * @returns the word, and a time on the clock of Redis, which opens the sale, Unix ms: as the word says, else now
   * @throws OperationalError redis; the token may be noted all the same
   * Source: lua/issue-token-3.lua
   */
  issue(issue: TokenIssue, buyer: TokenBuyer): Promise<{ readonly outcome: Issued; readonly atMs: number }>;

  /**
   * Binds the token of a buyer to one purchase. Safe to repeat for that purchase. A buyer who is not known counts as
   * one who has a token: the caller has checked its seal.
   * @param isGood false when the time of the token is over; the purchase it was redeemed for passes even then
   * @throws OperationalError redis; it may be bound all the same
   * Source: lua/redeem-token-2.lua
   */
  redeem(
    purchase: TokenBuyer & { readonly saleId: string; readonly requestId: string },
    isGood: boolean,
  ): Promise<Redeemed>;
}
