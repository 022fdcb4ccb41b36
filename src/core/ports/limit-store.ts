import type { LimitSet, LimitVerdict } from '../limits.js';

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
   * Source: lua/take-5.lua
   */
  take(call: LimitCall): Promise<LimitAnswers>;
}

/** Visits in one call, at most: few enough to keep Redis busy for less than a few milliseconds. */
export const LIMIT_CALLERS_MAX = 128;
