import type { Clock } from './ports/clock.js';

const SECOND_MS = 1000;

/** Allows at most `max` calls of `take` per second. */
export class SecondBudget {
  readonly #max: number;
  readonly #clock: Clock;
  #secondEndsMs = 0;
  #taken = 0;

  constructor(max: number, clock: Clock) {
    this.#max = max;
    this.#clock = clock;
  }

  /** @returns whether any of this second's budget was left */
  take(): boolean {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs >= this.#secondEndsMs) {
      this.#secondEndsMs = nowMs + SECOND_MS;
      this.#taken = 0;
    }
    return this.#taken++ < this.#max;
  }
}
