import type { Clock } from '../../../src/core/ports/clock.js';

/** A clock that moves only when told, and by every sleep: nothing waits, everything has its time. */
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
    await new Promise((resolve) => setImmediate(resolve)); // lets other loops have their turn
  }

  advance(ms: number): void {
    this.#nowMs += ms;
  }
}
