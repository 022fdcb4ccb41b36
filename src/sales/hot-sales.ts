import { Gauge, type Registry } from 'prom-client';
import type { Clock } from '../core/ports/clock.js';

/** How often a key came. It came `count - error` to `count` times. */
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
 * Counts the keys that come most often, in bounded memory (the space-saving sketch). A new key replaces the
 * rarest one and takes over its count: so counts are never too low, and too high by total / capacity at most. Every key
 * that came more often than that is kept.
 */
export class SpaceSaving {
  readonly #capacity: number;
  readonly #counters = new Map<string, Counter>();
  #total = 0;

  /** @param capacity keys that are kept, at least 1 */
  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  /** How often any key came. */
  get total(): number {
    return this.#total;
  }

  /** Keys that are kept. */
  get size(): number {
    return this.#counters.size;
  }

  add(key: string): void {
    this.#total++;
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
    this.#total = 0;
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

export interface HotSalesOptions {
  /** A sale is hot from so many purchases a second on, in this process; 0: nothing is counted. */
  readonly perSecond: number;
}

/** A sale with many attempts to buy. */
export interface HotSale {
  readonly saleId: string;
  /** Over the window; at least so many. */
  readonly perSecond: number;
}

/** The window slides by one slice. */
const SLICE_MS = 1000;
const SLICES = 10;
/** A sale with more than a 64th of all purchases of a second is counted in any case. */
const SALES_PER_SLICE = 64;
/** How many are named; they are labels of a metric. */
export const HOT_SALES_MAX = 10;

/** The sales with most attempts to buy, over the last ten seconds of this process. Memory does not grow with the number of sales. */
export class HotSales {
  readonly #options: HotSalesOptions;
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  readonly #slices = Array.from({ length: SLICES }, () => new SpaceSaving(SALES_PER_SLICE));
  /** Number of the slice that is being filled, since the clock began. */
  #now = 0;

  constructor(options: HotSalesOptions, clock: Pick<Clock, 'monotonicMs'>) {
    this.#options = options;
    this.#clock = clock;
    if (options.perSecond > 0) this.#now = this.#sliceOfNow();
  }

  /** Counts one attempt to buy. */
  saw(saleId: string): void {
    if (this.#options.perSecond === 0) return;
    this.#slide();
    this.#slices[this.#now % SLICES]?.add(saleId);
  }

  /**
   * The hottest first, at most HOT_SALES_MAX. A second that has just begun counts as a whole one, so a rate is rather
   * too low.
   */
  hottest(): HotSale[] {
    if (this.#options.perSecond === 0) return [];
    this.#slide();
    const sure = new Map<string, number>();
    for (const slice of this.#slices) {
      for (const { key, count, error } of slice.counts()) sure.set(key, (sure.get(key) ?? 0) + count - error);
    }
    return [...sure]
      .map(([saleId, count]) => ({ saleId, perSecond: (count * 1000) / (SLICES * SLICE_MS) }))
      .filter(({ perSecond }) => perSecond >= this.#options.perSecond)
      .sort((a, b) => b.perSecond - a.perSecond)
      .slice(0, HOT_SALES_MAX);
  }

  /** Forgets what has left the window. */
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

/** Shows the sales that are hot right now, each with its rate; one that has cooled down is gone. At most ten of them. */
export function showHotSales(
  registry: Registry,
  hottest: () => readonly { readonly saleId: string; readonly perSecond: number }[],
): void {
  new Gauge({
    name: 'seckill_hot_sale_purchases_per_second',
    help: 'Purchases a second in this process, over the last ten seconds, of each sale that is hot.',
    labelNames: ['sale'],
    registers: [registry],
    collect() {
      this.reset();
      for (const { saleId, perSecond } of hottest()) this.set({ sale: saleId }, perSecond);
    },
  });
}
