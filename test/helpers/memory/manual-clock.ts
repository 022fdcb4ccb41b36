import type { Clock } from '../../../src/core/ports/clock.js';

/**
 * A clock that a test moves. A sleep moves it too and ends at once, so nothing waits. Its monotonic time begins
 * elsewhere than its wall time, so that code which mixes the two fails.
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
    await new Promise((resolve) => setImmediate(resolve)); // other loops run meanwhile
  }

  /** Time passes. */
  advance(ms: number): void {
    this.#nowMs += ms;
    this.#monotonicMs += ms;
  }

  /** Somebody sets the clock of the machine; no time passes. */
  step(ms: number): void {
    this.#nowMs += ms;
  }
}
