import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { liveAs, type BuyersWorld, type OfferedSale } from './buyer.js';
import { Arrivals, habitOf, SALE_KINDS } from './plan.js';
import type { DemoSale, DemoSales } from './sales.js';

/** The interval at which buyers arrive. */
const STEP_MS = 200;
/** Maximum of concurrent buyers. Further buyers stay away, so that a hanging system does not fill this process. */
const BUYERS_MAX = 1_000;
/**
 * Maximum number of buyers without an answer to their click. Further buyers stay away, because a busy machine answers a
 * crowd late or not at all.
 */
const UNANSWERED_MAX = 100;
/** Delay after a sale could not be created. */
const SALES_RETRY_MS = 2_000;
/** Maximum time to follow accepted purchases once buyers have stopped coming, in case no API answers. */
const FOLLOWED_MAX_MS = 60_000;

/** Sends a steady stream of buyers to the sales of the demo. */
export class Traffic {
  readonly #world: BuyersWorld;
  readonly #sales: DemoSales;
  readonly #report: (sentence: string) => void;
  readonly #stopping: AbortController;
  readonly #lives = new Set<Promise<void>>();
  /** The number of buyers so far, by kind of sale. */
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
    setMaxListeners(0, stopping.signal); // each thinking buyer adds a listener
  }

  start(): void {
    this.#loop = Promise.all([this.#keepSalesGoing(), this.#keepBuyersComing()]);
  }

  /** Stops new buyers and follows accepted purchases to their orders. */
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
        if (why !== said) this.#report(`The demo could not create a sale (${why}), and tries again.`);
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

/** Returns the rate of a sale at this time, 0 after its end. */
function buyersPerSecond({ name, opensAtMs, closesAtMs }: DemoSale, nowMs: number): number {
  if (name === 'refused' || nowMs >= closesAtMs) return 0;
  return SALE_KINDS[name].buyersPerSecond(nowMs - opensAtMs);
}
