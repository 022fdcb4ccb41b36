import { OperationalError } from '../core/errors.js';
import { toNextTick } from '../core/job.js';
import type { Clock } from '../core/ports/clock.js';
import type { HotSale, HotSaleStore } from '../core/ports/hot-sales.js';
import type { Log } from '../core/ports/log.js';

/** How often a key was added: at least `count - error` and at most `count` times. */
export interface KeyCount {
  readonly key: string;
  readonly count: number;
  readonly error: number;
}

interface Counter {
  count: number;
  error: number;
}

/**
 * Counts the most frequent keys in bounded memory (the space-saving sketch). A new key replaces the rarest key and
 * takes over its count. So counts are never too low, and at most total / capacity too high. Every more frequent key is
 * kept.
 */
export class SpaceSaving {
  readonly #capacity: number;
  readonly #counters = new Map<string, Counter>();

  /** @param capacity number of keys kept, at least 1 */
  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  add(key: string): void {
    const counter = this.#counters.get(key);
    if (counter !== undefined) counter.count++;
    else if (this.#counters.size < this.#capacity) this.#counters.set(key, { count: 1, error: 0 });
    else this.#takePlace(key);
  }

  counts(): KeyCount[] {
    return [...this.#counters].map(([key, { count, error }]) => ({ key, count, error }));
  }

  clear(): void {
    this.#counters.clear();
  }

  #takePlace(key: string): void {
    let rarest = '';
    let least = Infinity;
    for (const [other, { count }] of this.#counters) {
      if (count < least) [rarest, least] = [other, count];
    }
    this.#counters.delete(rarest);
    this.#counters.set(key, { count: least + 1, error: least });
  }
}

const SLICE_MS = 1000;
const SLICES = 10;
/** Enough for every sale with more than 1/64 of all purchases in a second. */
const SALES_PER_SLICE = 64;
/** Maximum number of sales in one report. */
const REPORTED_MAX = 16;

/** Counts purchase attempts by sale, over the last ten seconds of this process, in bounded memory. */
export class HotSales {
  readonly #clock: Clock;
  readonly #slices = Array.from({ length: SLICES }, () => new SpaceSaving(SALES_PER_SLICE));
  /** Number of the current slice, since the clock began. */
  #now: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#now = this.#sliceOfNow();
  }

  countAttempt(saleId: string): void {
    this.#slide();
    this.#slices[this.#now % SLICES]?.add(saleId);
  }

  /** Returns at most REPORTED_MAX sales, busiest first. The current second counts in full: no rate is too high. */
  busiest(): HotSale[] {
    this.#slide();
    const sure = new Map<string, number>();
    for (const slice of this.#slices) {
      for (const { key, count, error } of slice.counts()) sure.set(key, (sure.get(key) ?? 0) + count - error);
    }
    return [...sure]
      .map(([saleId, count]) => ({ saleId, perSecond: (count * 1000) / (SLICES * SLICE_MS) }))
      .filter(({ perSecond }) => perSecond > 0)
      .sort((a, b) => b.perSecond - a.perSecond)
      .slice(0, REPORTED_MAX);
  }

  #slide(): void {
    const now = this.#sliceOfNow();
    const passed = Math.min(now - this.#now, SLICES);
    for (let slice = 1; slice <= passed; slice++) this.#slices[(this.#now + slice) % SLICES]?.clear();
    this.#now = now;
  }

  #sliceOfNow(): number {
    return Math.floor(this.#clock.monotonicMs() / SLICE_MS);
  }
}

const REPORT_EVERY_MS = 1000;
/** After this time, the last report of a silent process no longer counts. */
const REPORT_LIFE_MS = 5 * REPORT_EVERY_MS;

/** Reports once a second until the signal aborts. Reports nothing while nobody buys. */
export async function reportHotSales(
  hot: HotSales,
  processId: string,
  { store, clock, log }: { readonly store: HotSaleStore; readonly clock: Clock; readonly log: Log },
  signal: AbortSignal,
): Promise<void> {
  let wasBusy = false;
  const quietly = (call: Promise<void>): Promise<void> =>
    call.catch((err: unknown) => {
      if (!(err instanceof OperationalError)) throw err;
      log.debug({ err }, 'could not report hot sales; the next report follows in a second');
    });
  while (!signal.aborted) {
    const sales = hot.busiest();
    if (sales.length > 0 || wasBusy) await quietly(store.report(processId, sales, REPORT_LIFE_MS));
    wasBusy = sales.length > 0;
    await toNextTick(clock, REPORT_EVERY_MS, signal);
  }
  if (wasBusy) await quietly(store.withdraw(processId));
}
