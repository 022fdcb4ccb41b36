import type { Clock } from '../../core/ports/clock.js';
import type { Endpoint } from '../layer.js';
import type { AdmissionMetrics } from '../metrics.js';
import type { LimitedAddress } from './limited-addresses.js';

interface Counter {
  /** Maximum number of requests in one window. */
  readonly max: number;
  /** Number of requests in the previous window. */
  readonly before: number;
  /** Number of requests in this window. */
  count: number;
}

const WINDOW_MS = 10_000;
/** Maximum number of addresses per window (some MB). Others pass uncounted, so a client cannot lock them out. */
const ADDRESSES_MAX = 50_000;

interface AddressLimitParts {
  readonly limited: LimitedAddress;
  readonly clock: Clock;
  readonly metrics: AdmissionMetrics;
}

/**
 * Applies even without rules, which set the limits for all processes together. Counts the requests of each address to
 * this process in memory: cheaper than any other step, and a single client cannot make the others expensive.
 */
export class AddressLimit {
  readonly #parts: AddressLimitParts;
  readonly #max: number;
  #counters = new Map<string, Counter>();
  /** Counters by address as it is written, because a client may write one network in many ways. */
  #byAddress = new Map<string, readonly Counter[]>();
  #earlier: ReadonlyMap<string, Counter> = new Map();
  #startedMs: number;

  /** @param max requests of one address in ten seconds; 0: no limit */
  constructor(max: number, parts: AddressLimitParts) {
    this.#max = max;
    this.#parts = parts;
    this.#startedMs = parts.clock.monotonicMs();
  }

  get isOn(): boolean {
    return this.#max > 0;
  }

  /**
   * Counts a request unless it exceeds the limit.
   * @param endpoint for the metric; `other` for endpoints that no rule names
   * @returns whether it exceeds the limit
   */
  refuses(address: string, endpoint: Endpoint | 'other'): boolean {
    const elapsedMs = this.#turn();
    const counters = this.#byAddress.get(address) ?? this.#open(address);
    // The window slides: the previous window counts by the share of it that is less than a window ago.
    const restOfBefore = 1 - elapsedMs / WINDOW_MS;
    for (const { max, before, count } of counters) {
      if (before * restOfBefore + count < max) continue;
      this.#parts.metrics.limitRefused(endpoint, 'address', 'on');
      return true;
    }
    for (const counter of counters) counter.count++;
    return false;
  }

  /** Begins a new window if it is time. @returns the age of the window */
  #turn(): number {
    const elapsedMs = this.#parts.clock.monotonicMs() - this.#startedMs;
    if (elapsedMs < WINDOW_MS) return elapsedMs;
    this.#earlier = elapsedMs < 2 * WINDOW_MS ? this.#counters : new Map<string, Counter>();
    this.#counters = new Map();
    this.#byAddress = new Map();
    this.#startedMs += elapsedMs - (elapsedMs % WINDOW_MS);
    return elapsedMs % WINDOW_MS;
  }

  /** Returns the counters of an address, except those for which there is no room. */
  #open(address: string): readonly Counter[] {
    const counters = this.#parts
      .limited(address)
      .map(({ key, times }) => this.#counters.get(key) ?? this.#openKey(key, times * this.#max))
      .filter((counter) => counter !== null);
    if (this.#byAddress.size < ADDRESSES_MAX) this.#byAddress.set(address, counters);
    return counters;
  }

  #openKey(key: string, max: number): Counter | null {
    if (this.#counters.size >= ADDRESSES_MAX) return null;
    const counter = { max, before: this.#earlier.get(key)?.count ?? 0, count: 0 };
    this.#counters.set(key, counter);
    return counter;
  }
}
