import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { liveAs, type BuyersWorld, type OfferedSale } from './buyer.js';
import { Arrivals, habitOf, SALE_KINDS } from './plan.js';
import type { DemoSale, DemoSales } from './sales.js';

/** Buyers come in steps of this. */
const STEP_MS = 200;
/** At a time. One more stays away, so that a system that hangs does not fill this process. */
const BUYERS_MAX = 1_000;
/** While so many wait for the answer to their click, who comes stays away: a busy machine answers late, and not at all to a crowd. */
const UNANSWERED_MAX = 100;
/** After a sale could not be made. */
const SALES_RETRY_MS = 2_000;
/** Nothing has answered, and nothing says why, for so long after the last buyer came. */
const FOLLOWED_MAX_MS = 60_000;

/** Buyers who keep coming to the sales of the demo. */
export class Traffic {
  readonly #world: BuyersWorld;
  readonly #sales: DemoSales;
  readonly #report: (sentence: string) => void;
  readonly #stopping: AbortController;
  readonly #lives = new Set<Promise<void>>();
  /** Buyers so far, by kind of sale. */
  readonly #came = new Map<string, number>();
  #loop: Promise<unknown> = Promise.resolve();

  /** @param stopping is aborted by `stop`; `world` has its signal */
  constructor(
    world: BuyersWorld,
    sales: DemoSales,
    { report, stopping }: { readonly report: (sentence: string) => void; readonly stopping: AbortController },
  ) {
    this.#world = world;
    this.#sales = sales;
    this.#report = report;
    this.#stopping = stopping;
    setMaxListeners(0, stopping.signal); // each buyer who thinks listens
  }

  start(): void {
    this.#loop = Promise.all([this.#keepSalesGoing(), this.#keepBuyersComing()]);
  }

  /** Nobody comes any more; those who bought are followed to their orders. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#loop;
    await Promise.race([Promise.all(this.#lives), sleep(FOLLOWED_MAX_MS, undefined, { ref: false })]);
  }

  async #keepSalesGoing(): Promise<void> {
    let said = '';
    while (!this.#stopping.signal.aborted) {
      try {
        await this.#sales.keepGoing(Date.now());
        said = '';
      } catch (error) {
        const why = error instanceof Error ? error.message : String(error);
        if (why !== said) this.#report(`A sale of the demo could not be made (${why}); it is tried again.`);
        said = why;
      }
      await this.#pause(said === '' ? STEP_MS : SALES_RETRY_MS);
    }
  }

  async #keepBuyersComing(): Promise<void> {
    const arrivals = new Map<string, Arrivals>();
    let lastMs = performance.now();
    while (!this.#stopping.signal.aborted) {
      await this.#pause(STEP_MS);
      const stepMs = performance.now() - lastMs;
      lastMs += stepMs;
      for (const sale of this.#sales.going) {
        const perSecond = buyersPerSecond(sale, Date.now());
        const coming = arrivals.get(sale.name) ?? new Arrivals();
        arrivals.set(sale.name, coming);
        for (let left = coming.after(stepMs, perSecond); left > 0; left--) this.#arrive(sale);
      }
    }
  }

  #arrive(sale: DemoSale): void {
    const isFull = this.#lives.size >= BUYERS_MAX || this.#world.unanswered.count >= UNANSWERED_MAX;
    if (isFull || this.#stopping.signal.aborted) return;
    const { saleId, limitPerBuyer, name } = sale;
    const offered: OfferedSale = { saleId, limitPerBuyer, hasQueue: name === 'queued' };
    const nth = this.#came.get(name) ?? 0;
    this.#came.set(name, nth + 1);
    const life = liveAs(habitOf(nth), offered, this.#world).finally(() => this.#lives.delete(life));
    this.#lives.add(life);
  }

  async #pause(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.#stopping.signal }).catch(() => undefined);
  }
}

/** Of a sale at a time; none once it is over. */
function buyersPerSecond({ name, opensAtMs, closesAtMs }: DemoSale, nowMs: number): number {
  if (name === 'refused' || nowMs >= closesAtMs) return 0;
  return SALE_KINDS[name].buyersPerSecond(nowMs - opensAtMs);
}
