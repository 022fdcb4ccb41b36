import type { Clock } from '../../core/ports/clock.js';

export interface LeakyLimit {
  readonly ratePerSecond: number;
  /** Maximum wait, ms. A request that would have to wait longer is refused. */
  readonly waitMaxMs: number;
}

/** The resolution of a timer. A request that is due within this time proceeds at once. */
const TIMER_STEP_MS = 1;

/** Number of admitted requests that stay in the array, because shifting the array after each would cost more. */
const LEFT_KEPT_MAX = 1000;

interface Waiting {
  readonly dueMs: number;
  readonly leave: () => void;
}

/** Admits the requests of a process at a steady rate, in order of arrival, with a single timer. */
export class LeakyBucket {
  readonly #clock: Clock;
  #nextMs = -Infinity;
  #queue: Waiting[] = [];
  /** Index of the first waiting request. */
  #head = 0;
  #running = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get waiting(): number {
    return this.#queue.length - this.#head;
  }

  /** @returns null to proceed, a promise to wait for, or a refusal */
  enter({ ratePerSecond, waitMaxMs }: LeakyLimit): null | Promise<void> | { readonly retryAfterMs: number } {
    const nowMs = this.#clock.monotonicMs();
    const dueMs = Math.max(nowMs, this.#nextMs);
    const waitMs = dueMs - nowMs;
    if (waitMs > waitMaxMs) return { retryAfterMs: waitMs - waitMaxMs };
    this.#nextMs = dueMs + 1000 / ratePerSecond;
    if (waitMs < TIMER_STEP_MS && this.waiting === 0) return null;
    return new Promise((leave) => {
      this.#queue.push({ dueMs, leave });
      if (!this.#running) void this.#run();
    });
  }

  async #run(): Promise<void> {
    this.#running = true;
    for (let first = this.#queue[this.#head]; first !== undefined; first = this.#queue[this.#head]) {
      const restMs = first.dueMs - this.#clock.monotonicMs();
      if (restMs > 0) {
        await this.#clock.sleep(Math.ceil(restMs));
        continue;
      }
      first.leave();
      this.#head++;
      if (this.#head === LEFT_KEPT_MAX) this.#dropLeft();
    }
    this.#dropLeft();
    this.#running = false;
  }

  #dropLeft(): void {
    this.#queue.splice(0, this.#head);
    this.#head = 0;
  }
}
