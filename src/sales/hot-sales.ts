import type { Clock } from '../core/ports/clock.js';
import { SpaceSaving } from './space-saving.js';

export interface HotSalesOptions {
  /** A sale is hot from so many purchases a second on, in this process; 0: nothing is counted. */
  readonly perSecond: number;
}

/** A sale that many press for. */
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
/** The hottest ones that are named; they are labels of a metric. */
export const HOT_SALES_MAX = 10;

/** Which sales are pressed for most, over the last ten seconds of this process. Takes no more memory for more sales. */
export class HotSales {
  readonly #options: HotSalesOptions;
  readonly #clock: Pick<Clock, 'nowMs'>;
  readonly #slices = Array.from({ length: SLICES }, () => new SpaceSaving(SALES_PER_SLICE));
  /** Number of the slice that is being filled, since the clock began. */
  #now = 0;

  constructor(options: HotSalesOptions, clock: Pick<Clock, 'nowMs'>) {
    this.#options = options;
    this.#clock = clock;
    if (options.perSecond > 0) this.#now = this.#sliceOfNow();
  }

  /** Somebody presses. */
  saw(saleId: string): void {
    if (this.#options.perSecond === 0) return;
    this.#slide();
    this.#slices[this.#now % SLICES]?.add(saleId);
  }

  /** The hottest first, at most HOT_SALES_MAX. A second that has just begun counts as a whole one, so a rate is rather too low. */
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

  /** Forgets what has left the window. A clock that steps back leaves everything as it is. */
  #slide(): void {
    const now = this.#sliceOfNow();
    const passed = Math.min(now - this.#now, SLICES);
    for (let slice = 1; slice <= passed; slice++) this.#slices[(this.#now + slice) % SLICES]?.clear();
    this.#now = Math.max(this.#now, now);
  }

  #sliceOfNow(): number {
    return Math.floor(this.#clock.nowMs() / SLICE_MS);
  }
}
