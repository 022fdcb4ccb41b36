import type { Clock } from '../../../src/core/ports/clock.js';

/**
 * A clock that a test moves. A sleep moves it, too, and ends at once. Wall time and monotonic time have different
 * origins, so that code that mixes them fails.
 */
export class ManualClock implements Clock {
  #nowMs: number;
  #monotonicMs = 1_000;

  constructor(nowMs = Date.UTC(2026, 0, 1)) {
    this.#nowMs = nowMs;
  }

  nowMs(): number {
    return this.#nowMs;
  }

  monotonicMs(): number {
    return this.#monotonicMs;
  }

  async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (!signal?.aborted) this.advance(ms);
    await new Promise((resolve) => setImmediate(resolve)); // lets other loops run
  }

  /** Lets time pass. */
  advance(ms: number): void {
    this.#nowMs += ms;
    this.#monotonicMs += ms;
  }

  /** Changes the wall clock of the machine without letting time pass. */
  step(ms: number): void {
    this.#nowMs += ms;
  }
}
