/** Credit for so long a pause is kept: a line that was empty does not let a crowd in at once. In ms. */
const CREDIT_MAX_MS = 1000;

/**
 * How many may go in now, so that over any time it is the rate: a part of a place is kept for the next time.
 * The rate may change between two calls; it counts for the time since the call before.
 */
export class Pace {
  #sinceMs: number;
  #credit = 0;

  constructor(nowMs: number) {
    this.#sinceMs = nowMs;
  }

  /** Whole places that are free now. A clock that steps back frees none. */
  free(perSecond: number, nowMs: number): number {
    const passedMs = Math.max(0, nowMs - this.#sinceMs);
    this.#sinceMs = Math.max(this.#sinceMs, nowMs);
    const creditMax = 1 + (perSecond * CREDIT_MAX_MS) / 1000; // 1: the place in the making is not lost by waiting
    this.#credit = Math.min(creditMax, this.#credit + (perSecond * passedMs) / 1000);
    return Math.floor(this.#credit + ROUNDING);
  }

  take(places: number): void {
    this.#credit -= places;
  }

  /** When the next place will be free, in ms from the last look; Infinity at a rate of 0. */
  untilNextMs(perSecond: number): number {
    return perSecond > 0 ? Math.max(0, ((1 - this.#credit) * 1000) / perSecond) : Infinity;
  }
}

/** Ten times 0.1 is a little less than 1. */
const ROUNDING = 1e-9;
