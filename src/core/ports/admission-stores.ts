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

/** Collects the breaker states of all processes. Methods throw OperationalError redis. */
export interface BreakerStore {
  /**
   * Replaces our report and reads the reports of all live processes, at most 1000, ours included. An unreadable report
   * of another release means closed breakers. Source: lua/report-breakers-2.lua
   * @param lifeMs a process is no longer live without a new report for this time, on the clock of the store
   */
  exchange(processId: string, report: BreakerReport, lifeMs: number): Promise<readonly LiveReport[]>;

  /** Removes the report when the process ends. Does nothing without a report. */
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
   * @throws OperationalError redis; the requests may be counted. Source: lua/take-permits-5.lua
   */
  take(call: LimitCall): Promise<LimitAnswers>;
}

/** Maximum number of requests in one call. Keeps Redis busy for at most a few milliseconds. */
export const LIMIT_CALLERS_MAX = 128;

/** `outdated`: the store may have forgotten nonces since the request was signed, so this one may have been used. */
export type NonceTaken = 'fresh' | 'used' | 'outdated';

/** Remembers used nonces for all processes together. */
export interface NonceStore {
  /**
   * Takes a nonce for `lifeMs`. Only the first of several callers gets `fresh`; the others get `used`. Source:
   * lua/take-nonce-2.lua
   * @param keyId, nonce 1 to 64 characters of A-Z a-z 0-9 _ -; each key has its own nonces
   * @param times `signedAtMs`: signing time by the request, Unix ms
   * @throws OperationalError redis; the nonce may be taken
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
  /** The first moment to issue a token. */
  readonly fromMs: number;
  /** The first moment that is too late to issue a token. */
  readonly untilMs: number;
  /** A token's lifetime begins at this time, or later with its issue. */
  readonly opensAtMs: number;
  readonly lifeMs: number;
  /** Maximum number of tokens whose lifetime has not ended. */
  readonly tokensMax: number;
  /** Maximum number of tokens that one buyer gets, one after the other. */
  readonly perBuyer: number;
  /** Maximum number of tokens for one address that are neither redeemed nor expired. Null: no limit. */
  readonly perAddress: number | null;
}

/** The buyer and the client address to count. A null address is unknown and not counted. */
export interface TokenBuyer {
  readonly userId: string;
  readonly address: string | null;
}

/**
 * - `issued`, `issued_before`: with the end of the token's lifetime, which may be over for a redeemed token
 * - `buyer_limit`: the buyer let `perBuyer` tokens lapse
 * - `address_limit`, `none_left`: with the time when a token becomes free
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
 * The purchase tokens of a sale, and for which purchase each was redeemed. Holds at most the valid tokens, as many
 * lapsed ones, and the redeemed ones.
 */
export interface PurchaseTokenStore {
  /**
   * Records that a buyer gets a token. Safe to repeat: a buyer keeps the same token until its lifetime ends. Source:
   * lua/issue-token-3.lua
   * @returns the outcome's time (or the current one), Unix ms on the clock of Redis, which opens the sale
   * @throws OperationalError redis; the token may be recorded
   */
  issue(issue: TokenIssue, buyer: TokenBuyer): Promise<{ readonly outcome: Issued; readonly atMs: number }>;

  /**
   * Binds a token to one purchase. Safe to repeat. An unknown buyer counts as a token holder: the caller has checked
   * the seal. Source: lua/redeem-token-2.lua
   * @param isGood false: the lifetime is over, and only the purchase that redeemed the token passes
   * @throws OperationalError redis; the token may be bound
   */
  redeem(
    purchase: TokenBuyer & { readonly saleId: string; readonly requestId: string },
    isGood: boolean,
  ): Promise<Redeemed>;
}
