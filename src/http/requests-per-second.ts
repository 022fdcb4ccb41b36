import type { Clock } from '../core/ports/clock.js';

/** Counts the requests of each address to this process, second by second. */
export class RequestsPerSecond {
  readonly #max: number;
  readonly #clock: Clock;
  readonly #counts = new Map<string, number>();
  #second = 0;

  /** @param max requests of one address per second */
  constructor(max: number, clock: Clock) {
    this.#max = max;
    this.#clock = clock;
  }

  /**
   * Counts a request.
   * @returns false if the request exceeds the limit
   */
  take(address: string): boolean {
    const second = Math.floor(this.#clock.nowMs() / 1000);
    if (second !== this.#second) {
      this.#second = second;
      this.#counts.clear();
    }
    const count = (this.#counts.get(address) ?? 0) + 1;
    if (count > this.#max) return false;
    this.#counts.set(address, count);
    return true;
  }
}
