/**
 * Runs keyed jobs, at most `parallel` at once and `queued` waiting. A key that waits or runs is not taken twice.
 */
export class KeyedLimiter {
  readonly #keys = new Set<string>();
  readonly #waiting: (() => void)[] = [];
  readonly #parallel: number;
  readonly #queued: number;
  #running = 0;

  constructor(parallel: number, queued: number) {
    this.#parallel = parallel;
    this.#queued = queued;
  }

  /** @returns what the job returns, or `skipped` when its key is under way or the queue is full; rejects as the job */
  async run<T>(key: string, job: () => Promise<T>): Promise<T | 'skipped'> {
    if (this.#keys.has(key)) return 'skipped';
    if (this.#running >= this.#parallel && this.#waiting.length >= this.#queued) return 'skipped';
    this.#keys.add(key);
    try {
      if (this.#running >= this.#parallel) await new Promise<void>((start) => this.#waiting.push(start));
      else this.#running += 1;
      return await job();
    } finally {
      this.#keys.delete(key);
      const next = this.#waiting.shift();
      if (next)
        next(); // takes over this place
      else this.#running -= 1;
    }
  }
}
