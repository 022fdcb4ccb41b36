import type { Clock } from '../../core/ports/clock.js';
import type { Endpoint } from '../layer.js';
import type { AdmissionMetrics } from '../metrics.js';
import type { LimitedAddress } from './limited-addresses.js';

interface Counter {
  /** Requests in one window. */
  readonly max: number;
  /** Requests in the window before. */
  readonly before: number;
  /** Requests in this window. */
  count: number;
}

const WINDOW_MS = 10_000;
/** Addresses counted in one window, some MB; a further one passes uncounted, so that nobody can lock others out. */
const ADDRESSES_MAX = 50_000;

/**
 * The limit that is on without any rules: requests of each address to this process, counted in its memory. It costs less
 * than any other step, and keeps one client from making the others expensive. Limits that hold for all processes
 * together are those of the rules.
 */
export class AddressLimit {
  readonly #max: number;
  readonly #limited: LimitedAddress;
  readonly #clock: Clock;
  readonly #metrics: AdmissionMetrics;
  /** By what an address counts as. */
  #counters = new Map<string, Counter>();
  /** By an address as it was written: a client may write one network in many ways. */
  #byAddress = new Map<string, readonly Counter[]>();
  #earlier: ReadonlyMap<string, Counter> = new Map();
  #startedMs: number;

  /** @param max requests of one address in ten seconds; 0: any number */
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
   * Counts one request. True: it is one too many; then it is not counted.
   * @param endpoint for the metric; `other`: what no rule names
   */
  refuses(address: string, endpoint: Endpoint | 'other'): boolean {
    const elapsedMs = this.#turn();
    const counters = this.#byAddress.get(address) ?? this.#open(address);
    // The window slides: of the one before counts what is still less than a window ago, evenly spread.
    const restOfBefore = 1 - elapsedMs / WINDOW_MS;
    for (const { max, before, count } of counters) {
      if (before * restOfBefore + count < max) continue;
      this.#metrics.limitRefused(endpoint, 'address', 'on');
      return true;
    }
    for (const counter of counters) counter.count++;
    return false;
  }

  /** Begins a new window when it is time. @returns how old the present one is */
  #turn(): number {
    const elapsedMs = this.#clock.monotonicMs() - this.#startedMs;
    if (elapsedMs < WINDOW_MS) return elapsedMs;
    this.#earlier = elapsedMs < 2 * WINDOW_MS ? this.#counters : new Map<string, Counter>();
    this.#counters = new Map();
    this.#byAddress = new Map();
    this.#startedMs += elapsedMs - (elapsedMs % WINDOW_MS);
    return elapsedMs % WINDOW_MS;
  }

  /** Without those that there is no place for. */
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
