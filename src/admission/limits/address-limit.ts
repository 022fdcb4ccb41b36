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
/**
 * Maximum number of addresses counted in one window; they take some MB. Further addresses pass uncounted, so that a
 * client cannot lock others out.
 */
const ADDRESSES_MAX = 50_000;

/**
 * A limit that applies even without rules. It counts the requests of each address to this process in memory, which
 * costs less than any other step and keeps a single client from making the other steps expensive. The rules set the
 * limits for all processes together.
 */
export class AddressLimit {
  readonly #max: number;
  readonly #limited: LimitedAddress;
  readonly #clock: Clock;
  readonly #metrics: AdmissionMetrics;
  /** Counters by limited address. */
  #counters = new Map<string, Counter>();
  /** Counters by address as it is written, because a client may write one network in many ways. */
  #byAddress = new Map<string, readonly Counter[]>();
  #earlier: ReadonlyMap<string, Counter> = new Map();
  #startedMs: number;

  /** @param max number of requests of one address in ten seconds; 0 disables the limit */
  constructor(
    max: number,
    {
      limited,
      clock,
      metrics,
    }: {
      readonly limited: LimitedAddress;
      readonly clock: Clock;
      readonly metrics: AdmissionMetrics;
    },
  ) {
    this.#max = max;
    this.#limited = limited;
    this.#clock = clock;
    this.#metrics = metrics;
    this.#startedMs = clock.monotonicMs();
  }

  get isOn(): boolean {
    return this.#max > 0;
  }

  /**
   * Counts a request, unless it exceeds the limit.
   * @param endpoint for the metric; `other` for endpoints that no rule names
   * @returns whether the request exceeds the limit
   */
  refuses(address: string, endpoint: Endpoint | 'other'): boolean {
    const elapsedMs = this.#turn();
    const counters = this.#byAddress.get(address) ?? this.#open(address);
    // The window slides: requests of the previous window count in proportion to how much of that window is less than
    // one window ago.
    const restOfBefore = 1 - elapsedMs / WINDOW_MS;
    for (const { max, before, count } of counters) {
      if (before * restOfBefore + count < max) continue;
      this.#metrics.limitRefused(endpoint, 'address', 'on');
      return true;
    }
    for (const counter of counters) counter.count++;
    return false;
  }

  /**
   * Begins a new window if it is time.
   * @returns the age of the current window
   */
  #turn(): number {
    const elapsedMs = this.#clock.monotonicMs() - this.#startedMs;
    if (elapsedMs < WINDOW_MS) return elapsedMs;
    this.#earlier = elapsedMs < 2 * WINDOW_MS ? this.#counters : new Map<string, Counter>();
    this.#counters = new Map();
    this.#byAddress = new Map();
    this.#startedMs += elapsedMs - (elapsedMs % WINDOW_MS);
    return elapsedMs % WINDOW_MS;
  }

  /** Returns the counters of an address, except those for which there is no room. */
  #open(address: string): readonly Counter[] {
    const counters = this.#limited(address)
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
