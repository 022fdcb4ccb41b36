import { LRUCache } from 'lru-cache';
import { askedBucketsOf } from '../core/bucket.js';
import type { Sale } from '../core/sale.js';
import type { Clock } from '../core/ports/clock.js';
import type { StoredSale, StockStore } from '../core/ports/stock-store.js';
import type { UnitFetcher } from './stock/gather-units.js';
import type { SaleSnapshots } from './sale-snapshots.js';

/** Below this fraction of its stock, a sale shows `few`. */
const FEW_SHARE = 0.1;

export const SHOWN_STATES = ['announced', 'not_open', 'open', 'paused', 'closed', 'loading'] as const;
export const SHOWN_STOCKS = ['plenty', 'few', 'none', 'unknown'] as const;

/** The public view of a sale, up to a second old. The stock is rough, so robots cannot use it. */
export interface SaleView {
  readonly saleId: string;
  readonly sku: string;
  readonly title: string;
  readonly priceCents: number;
  readonly currency: string;
  readonly limitPerBuyer: number;
  /** Null if the sale has no payment window of its own. */
  readonly paymentWindowMs: number | null;
  /** `announced`: not loaded yet. `not_open` and `closed` also follow the window, by the time of Redis. */
  readonly state: (typeof SHOWN_STATES)[number];
  readonly stock: (typeof SHOWN_STOCKS)[number];
  readonly opensAtMs: number;
  readonly closesAtMs: number;
  /** Time of the view, by the clock of Redis, which opens and closes sales, or by ours if Redis lacks the sale. */
  readonly nowMs: number;
}

export type GetSaleAnswer =
  | { readonly outcome: 'found'; readonly view: SaleView }
  | { readonly outcome: 'not_found' | 'loading' };

export interface GetSalePorts {
  readonly snapshots: SaleSnapshots;
  readonly store: StockStore;
  readonly units: UnitFetcher;
  readonly clock: Clock;
}

interface Reading {
  /** Time of the reading on our monotonic clock. */
  readonly readMs: number;
  readonly answer: (ageMs: number) => GetSaleAnswer;
  /** The answer that shared caches may keep. Null until there is one. */
  shared: GetSaleAnswer | null;
}

/** Reads a sale at most once a second per process. Between reads, its state follows the clock. */
export class GetSale {
  readonly #ports: GetSalePorts;
  readonly #readings: LRUCache<string, Promise<Reading>>;

  constructor(ports: GetSalePorts, options: { readonly ttlMs: number; readonly max: number }) {
    this.#ports = ports;
    this.#readings = new LRUCache({ max: options.max, ttl: options.ttlMs });
  }

  /**
   * Returns the same object until the next read or change of state, so a crowd gets equal answers.
   * @param isExact whether the answer must have the current time
   * @throws OperationalError redis or mysql
   */
  async get(saleId: string, isExact = false): Promise<GetSaleAnswer> {
    const reading = await this.#reading(saleId);
    const answer = reading.answer(this.#ports.clock.monotonicMs() - reading.readMs);
    if (isExact) return answer;
    const { shared } = reading;
    if (shared === null || stateIn(shared) !== stateIn(answer)) reading.shared = answer;
    return reading.shared ?? answer;
  }

  #reading(saleId: string): Promise<Reading> {
    const known = this.#readings.get(saleId);
    if (known) return known;
    const reading = this.#read(saleId).then((answer) => ({
      readMs: this.#ports.clock.monotonicMs(),
      answer,
      shared: null,
    }));
    this.#readings.set(saleId, reading);
    reading.catch(() => this.#readings.delete(saleId));
    return reading;
  }

  async #read(saleId: string): Promise<Reading['answer']> {
    const { snapshots, store } = this.#ports;
    const snapshot = await snapshots.get(saleId);
    if (snapshot.snapshot === 'announced') return this.#announced(snapshot.sale);
    if (snapshot.snapshot !== 'ready') return always({ outcome: snapshot.snapshot });
    const { sale } = snapshot;
    if (sale.retiredAtMs !== null) return this.#closed(sale);
    const buckets = await Promise.all(askedBucketsOf(sale).map((ref) => store.readSale(ref)));
    const loaded = buckets.filter((bucket): bucket is StoredSale => bucket !== null);
    const [first] = loaded;
    const isWhole = loaded.length === buckets.length && loaded.every(({ state }) => state !== 'repair');
    if (sale.state === 'closed' && !isWhole) return this.#closed(sale);
    if (!first || loaded.length < buckets.length) return always({ outcome: 'loading' });
    const stock = coarse(await this.#unitsLeft(sale, loaded), sale.stock);
    const { opensAtMs, closesAtMs } = first;
    return (ageMs) => {
      const nowMs = Math.floor(first.nowMs + ageMs);
      const state = shownState({ ...first, nowMs });
      return { outcome: 'found', view: { ...itemOf(sale), state, stock, opensAtMs, closesAtMs, nowMs } };
    };
  }

  /** Answers from MySQL, because Redis does not have the sale yet. A sale that was never loaded also ends. */
  #announced(sale: Sale): Reading['answer'] {
    const { stock, opensAtMs, closesAtMs } = sale;
    return () => {
      const nowMs = this.#ports.clock.nowMs();
      const state = nowMs < closesAtMs ? 'announced' : 'closed';
      return {
        outcome: 'found',
        view: { ...itemOf(sale), state, stock: coarse(stock, stock), opensAtMs, closesAtMs, nowMs },
      };
    };
  }

  /** Answers from MySQL, because Redis may have lost a closed sale. */
  #closed(sale: Sale): Reading['answer'] {
    const { stock, sold, opensAtMs, closesAtMs } = sale;
    const item = { ...itemOf(sale), state: 'closed' as const, stock: coarse(stock - sold, stock) };
    const times = { opensAtMs, closesAtMs };
    return () => ({ outcome: 'found', view: { ...item, ...times, nowMs: this.#ports.clock.nowMs() } });
  }

  /** Also counts units in transit if no bucket has a unit. Null if unknown. */
  async #unitsLeft(sale: Sale, buckets: readonly StoredSale[]): Promise<number | null> {
    const left = buckets.reduce((sum, bucket) => sum + bucket.unitsLeft, 0);
    return left > 0 || buckets.length === 1 ? left : this.#ports.units.count(sale);
  }
}

const stateIn = (answer: GetSaleAnswer): string => (answer.outcome === 'found' ? answer.view.state : answer.outcome);

const always = (answer: GetSaleAnswer) => (): GetSaleAnswer => answer;

const itemOf = ({ saleId, sku, title, priceCents, currency, limitPerBuyer, paymentWindowMs }: Sale) => ({
  saleId,
  sku,
  title,
  priceCents,
  currency,
  limitPerBuyer,
  paymentWindowMs,
});

function coarse(left: number | null, stock: number): SaleView['stock'] {
  if (left === null) return 'unknown';
  if (left <= 0) return 'none';
  return left < stock * FEW_SHARE ? 'few' : 'plenty';
}

function shownState(sale: StoredSale): SaleView['state'] {
  if (sale.state === 'closed' || sale.nowMs >= sale.closesAtMs) return 'closed';
  if (sale.state === 'repair') return 'loading';
  if (sale.state === 'paused') return 'paused';
  return sale.state === 'open' && sale.nowMs >= sale.opensAtMs ? 'open' : 'not_open';
}
