import { ManualClock } from './manual-clock.js';

/** A clock that only a test moves. A sleep ends when the test has moved the clock far enough. */
export class SteppedClock extends ManualClock {
  readonly #sleepers = new Set<{ readonly dueMs: number; readonly wake: () => void }>();

  override sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const sleeper = { dueMs: this.monotonicMs() + ms, wake: resolve };
      this.#sleepers.add(sleeper);
      signal?.addEventListener('abort', () => {
        this.#sleepers.delete(sleeper);
        resolve();
      });
    });
  }

  override advance(ms: number): void {
    super.advance(ms);
    for (const sleeper of this.#sleepers) {
      if (sleeper.dueMs > this.monotonicMs()) continue;
      this.#sleepers.delete(sleeper);
      sleeper.wake();
    }
  }
}
