import type { Clock } from '../../../src/core/ports/clock.js';

/** A clock that a test moves. A sleep moves it too and ends at once, so nothing waits. */
export class ManualClock implements Clock {
  #nowMs: number;

  constructor(nowMs = Date.UTC(2026, 0, 1)) {
    this.#nowMs = nowMs;
  }

  nowMs(): number {
    return this.#nowMs;
  }

  async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (!signal?.aborted) this.advance(ms);
    await new Promise((resolve) => setImmediate(resolve)); // other loops run meanwhile
  }

  advance(ms: number): void {
    this.#nowMs += ms;
  }
}
