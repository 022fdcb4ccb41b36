import type { Dependency } from '../errors.js';
import type { LimitSet, LimitVerdict } from '../limits.js';

export const BREAKER_STATES = ['closed', 'open', 'half_open'] as const;
export type BreakerState = (typeof BREAKER_STATES)[number];

/** State of the breakers of one process, judged by its own calls only. */
export type BreakerReport = Readonly<Record<Dependency, BreakerState>>;

export interface LiveReport {
  readonly processId: string;
  readonly report: BreakerReport;
}

/** Collects the breaker states of all processes. */
export interface BreakerStore {
  /**
   * Replaces the report of this process and reads the reports of all live processes, including its own. A report that
   * cannot be read, because another release wrote it, counts as a live process with closed breakers.
   * @param lifeMs a process without a new report for this time, on the clock of the store, is no longer live
   * @returns at most 1000 reports, in no order
   * @throws OperationalError redis. Source: lua/report-breakers-2.lua
   */
  exchange(processId: string, report: BreakerReport, lifeMs: number): Promise<readonly LiveReport[]>;

  /**
   * Removes the report when the process ends. Does nothing if there is no report.
   * @throws OperationalError redis
   */
  withdraw(processId: string): Promise<void>;
}

/** The caller of a request. A field is null if unknown. Limits do not count an unknown caller. */
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
  /** Verdicts, in the order of the requests. */
  readonly verdicts: readonly LimitVerdict[];
  /** How many users and addresses were not counted because too many others already were. */
  readonly uncounted: number;
}

/** Counts requests. A refused request does not count towards any limit. */
export interface LimitStore {
  /**
   * @param call 1 to `LIMIT_CALLERS_MAX` requests, decided one after the other
   * @throws OperationalError redis; the requests may or may not have been counted
   * Source: lua/take-permits-5.lua
   */
  take(call: LimitCall): Promise<LimitAnswers>;
}

/** Maximum number of requests in one call. Keeps Redis busy for at most a few milliseconds. */
export const LIMIT_CALLERS_MAX = 128;

/**
 * `outdated` means that the store may have forgotten nonces since the request was signed, so it is unknown whether this
 * nonce was used.
 */
export type NonceTaken = 'fresh' | 'used' | 'outdated';

/** Remembers used nonces for all processes together. */
export interface NonceStore {
  /**
   * Takes a nonce for `lifeMs`. If several callers try at once, only the first gets it.
   * @param keyId, nonce 1 to 64 characters of A-Z a-z 0-9 _ -; each key has its own nonces
   * @param times `signedAtMs`: the signing time that the request states, Unix ms
   * @returns `fresh` for the first caller, `used` for all later callers
   * @throws OperationalError redis; the nonce may or may not be taken. Source: lua/take-nonce-2.lua
   */
  take(
    keyId: string,
    nonce: string,
    times: { readonly lifeMs: number; readonly signedAtMs: number },
  ): Promise<NonceTaken>;
}

/** How many tokens a sale issues, and when. Times in Unix ms. */
export interface TokenIssue {
  readonly saleId: string;
  /** First moment at which a token may be issued. */
  readonly fromMs: number;
  /** First moment at which it is too late to issue a token. */
  readonly untilMs: number;
  /** A token's lifetime begins at this time, or when the token is issued if that is later. */
  readonly opensAtMs: number;
  readonly lifeMs: number;
  /** Maximum number of tokens whose lifetime has not ended. */
  readonly tokensMax: number;
  /** Maximum number of tokens that one buyer gets, one after the other. */
  readonly perBuyer: number;
  /** Maximum number of tokens for one address that are neither redeemed nor expired. Null: no limit. */
  readonly perAddress: number | null;
}

/** A buyer and the address of the request, as the limits count addresses. A null address is unknown and not counted. */
export interface TokenBuyer {
  readonly userId: string;
  readonly address: string | null;
}

/**
 * - `issued`, `issued_before`: the buyer has a token, new or from before; names the end of its lifetime, which may be
 *   over for a redeemed token
 * - `buyer_limit`: the buyer let `perBuyer` tokens lapse
 * - `address_limit`, `none_left`: no token is free; names the time when the first token becomes free
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

/** `redeemed_before` means that the token was redeemed for this same purchase, so this is not a second use. */
export type Redeemed = 'redeemed_before' | 'redeemed_for_another' | 'ended' | 'redeemed';

/**
 * Records which buyers have a purchase token of a sale, and for which purchase each token was redeemed. It holds at
 * most the valid tokens of the sale, the same number of lapsed tokens, and the redeemed tokens.
 */
export interface PurchaseTokenStore {
  /**
   * Records that a buyer gets a token. Safe to repeat: the buyer keeps the same token until its lifetime ends.
   * @returns the outcome with its time in Unix ms on the clock of Redis, which opens the sale. If the outcome names no
   * time, the current time
   * @throws OperationalError redis; the token may have been recorded all the same. Source: lua/issue-token-3.lua
   */
  issue(issue: TokenIssue, buyer: TokenBuyer): Promise<{ readonly outcome: Issued; readonly atMs: number }>;

  /**
   * Binds the token of a buyer to one purchase. Safe to repeat for that purchase. An unknown buyer counts as a token
   * holder: the caller has checked the seal of the token.
   * @param isGood false if the lifetime of the token is over; the purchase for which it was redeemed still passes
   * @throws OperationalError redis; the token may have been bound all the same. Source: lua/redeem-token-2.lua
   */
  redeem(
    purchase: TokenBuyer & { readonly saleId: string; readonly requestId: string },
    isGood: boolean,
  ): Promise<Redeemed>;
}
