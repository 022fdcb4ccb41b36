import type { Dependency } from '../errors.js';
import type { LimitSet, LimitVerdict } from '../limits.js';

export const BREAKER_STATES = ['closed', 'open', 'half_open'] as const;
export type BreakerState = (typeof BREAKER_STATES)[number];

/** What one process says of each dependency, from its own experience only. */
export type Vote = Readonly<Record<Dependency, BreakerState>>;

export interface LiveVote {
  readonly processId: string;
  readonly vote: Vote;
}

/** Where every process says how its breakers stand, and sees what the others say. */
export interface BreakerStore {
  /**
   * Writes the vote of this process, in place of its last one, and reads those of all live processes, its own too.
   * A vote that cannot be read (another release wrote it) counts as a live process without trouble.
   * @param lifeMs after so long without another exchange, on the clock of the board, the process is not live any more
   * @returns at most 1000 votes, in no order
   * @throws OperationalError redis
   * Source: lua/report-breakers-2.lua
   */
  exchange(processId: string, vote: Vote, lifeMs: number): Promise<readonly LiveVote[]>;

  /**
   * Takes the vote back at once: the process ends. Nothing happens when there is none.
   * @throws OperationalError redis
   */
  withdraw(processId: string): Promise<void>;
}

/** Who comes; null: not known, so that limit does not count him. */
export interface LimitCaller {
  readonly address: string | null;
  readonly userId: string | null;
}

/** Visits of one endpoint under one set of limits. */
export interface LimitCall {
  readonly endpoint: string;
  readonly limits: LimitSet;
  readonly callers: readonly LimitCaller[];
}

export interface LimitAnswers {
  /** One per visit, in their order. */
  readonly verdicts: readonly LimitVerdict[];
  /** How often a user or an address was not counted, because too many others were. */
  readonly uncounted: number;
}

/** Counts who came. A visit that one limit refuses takes from none of them. */
export interface LimitStore {
  /**
   * @param call 1 to `LIMIT_VISITS_MAX` visits, judged one after the other
   * @throws OperationalError redis; they may have been counted or not
   * Source: lua/take-permits-5.lua
   */
  take(call: LimitCall): Promise<LimitAnswers>;
}

/** Visits in one call, at most: few enough to keep Redis busy for less than a few milliseconds. */
export const LIMIT_CALLERS_MAX = 128;

/** Remembers which nonces were used, for all processes together. */
export interface NonceStore {
  /**
   * Takes a nonce for `lifeMs`; of many who try at once, one gets it.
   * @param keyId, nonce 1 to 64 characters of A-Z a-z 0-9 _ -; each key has nonces of its own
   * @returns `fresh` for the first, `used` for everybody after him
   * @throws OperationalError redis, when nobody knows: the nonce may be taken or not
   */
  take(keyId: string, nonce: string, lifeMs: number): Promise<'fresh' | 'used'>;
}

/** How many tokens of a sale there are, and when they are handed out. */
export interface TokenIssue {
  readonly saleId: string;
  /** First moment, Unix ms. */
  readonly fromMs: number;
  /** First moment at which it is too late, Unix ms. */
  readonly untilMs: number;
  /** Buyers who may have one. */
  readonly tokensMax: number;
}

/** `handed_before`: this buyer has it already, and may have it again. */
export type Handed = 'too_early' | 'too_late' | 'handed_before' | 'none_left' | 'handed';

/** `spent_before`: for this very purchase, so it is no second use. */
export type Spent = 'spent_before' | 'spent_otherwise' | 'ended' | 'spent';

/** Who has a purchase token of a sale, and what he spent it for. Bounded by the tokens of the sale. */
export interface PurchaseTokenStore {
  /**
   * Notes that a buyer gets his token. Safe to repeat.
   * @returns the word, and the time of the ledger, Unix ms, which is the clock that opens the sale
   * @throws OperationalError redis; the token may be noted all the same
   */
  hand(issue: TokenIssue, userId: string): Promise<{ readonly outcome: Handed; readonly nowMs: number }>;

  /**
   * Binds the token of a buyer to one purchase. Safe to repeat for that purchase. A buyer who is not known counts as
   * one who has his token: the caller has seen its seal.
   * @param isGood false when the time of the token is over; a purchase it was spent for is let in even then
   * @throws OperationalError redis; it may be bound all the same
   */
  spend(
    purchase: { readonly saleId: string; readonly userId: string; readonly requestId: string },
    isGood: boolean,
  ): Promise<Spent>;
}
