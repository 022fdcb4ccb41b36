import { LRUCache } from 'lru-cache';
import type { Sale } from '../core/sale.js';
import type { Clock } from '../core/ports/clock.js';
import type { StoredSale, StockStore } from '../core/ports/stock-store.js';
import type { UnitFetcher } from './stock/gather-units.js';
import type { SaleSnapshots } from './sale-snapshots.js';

/** Below this share of its stock a sale shows `few`. */
const FEW_SHARE = 0.1;

/** The public view of a sale. Stock is coarse on purpose, so that robots cannot use it, and may be a second old. */
export interface SaleView {
  readonly saleId: string;
  readonly sku: string;
  readonly title: string;
  readonly priceCents: number;
  readonly currency: string;
  readonly limitPerBuyer: number;
  /** `not_open` and `closed` follow the window on Redis time, not only the switch of the operator. */
  readonly state: 'not_open' | 'open' | 'paused' | 'closed' | 'loading';
  readonly stock: 'plenty' | 'few' | 'none' | 'unknown';
  readonly opensAtMs: number;
  readonly closesAtMs: number;
  /** Redis time, the clock that opens and closes the sale; of one that Redis does not have any more, ours. */
  readonly nowMs: number;
}

export type GetSaleAnswer =
  | { readonly outcome: 'found'; readonly view: SaleView }
  | { readonly outcome: 'not_found' | 'loading' };

export interface GetSalePorts {
  readonly snapshots: SaleSnapshots;
  readonly store: Pick<StockStore, 'readSale'>;
  /** Of a sale with several buckets, all of them together. */
  readonly units: Pick<UnitFetcher, 'count'>;
  readonly clock: Clock;
}

/** Reads a sale for its page, at most once a second per sale and process. */
export class GetSale {
  readonly #ports: GetSalePorts;
  readonly #views: LRUCache<string, Promise<GetSaleAnswer>>;

  constructor(ports: GetSalePorts, options: { readonly ttlMs: number; readonly max: number }) {
    this.#ports = ports;
    this.#views = new LRUCache({ max: options.max, ttl: options.ttlMs });
  }

  /** @throws OperationalError redis or mysql */
  get(saleId: string): Promise<GetSaleAnswer> {
    const known = this.#views.get(saleId);
    if (known) return known;
    const view = this.#read(saleId);
    this.#views.set(saleId, view);
    view.catch(() => this.#views.delete(saleId));
    return view;
  }

  async #read(saleId: string): Promise<GetSaleAnswer> {
    const { snapshots, store } = this.#ports;
    const snapshot = await snapshots.get(saleId);
    if (snapshot.snapshot !== 'ready') return { outcome: snapshot.snapshot };
    const { sale } = snapshot;
    if (sale.retiredAtMs !== null) return { outcome: 'found', view: this.#viewOfClosed(sale) };
    const buckets = await Promise.all(
      Array.from({ length: sale.buckets }, (_, bucket) => store.readSale({ saleId, bucket, buckets: sale.buckets })),
    );
    const loaded = buckets.filter((bucket): bucket is StoredSale => bucket !== null);
    const [first] = loaded;
    const isWhole = loaded.length === buckets.length && loaded.every(({ state }) => state !== 'repair');
    if (sale.state === 'closed' && !isWhole) return { outcome: 'found', view: this.#viewOfClosed(sale) };
    if (!first || loaded.length < buckets.length) return { outcome: 'loading' };
    const left = await this.#unitsLeft(sale, loaded);
    const { opensAtMs, closesAtMs, nowMs } = first;
    const shown = { state: shownState(first), stock: coarse(left, sale.stock), opensAtMs, closesAtMs, nowMs };
    return { outcome: 'found', view: { ...itemOf(sale), ...shown } };
  }

  /** As MySQL has it: Redis need not have a closed sale any more. */
  #viewOfClosed(sale: Sale): SaleView {
    const { stock, sold, opensAtMs, closesAtMs } = sale;
    const nowMs = this.#ports.clock.nowMs();
    return { ...itemOf(sale), state: 'closed', stock: coarse(stock - sold, stock), opensAtMs, closesAtMs, nowMs };
  }

  /** Counts units in transit where no bucket shows a unit; null: not known. */
  async #unitsLeft(sale: Sale, buckets: readonly StoredSale[]): Promise<number | null> {
    const left = buckets.reduce((sum, bucket) => sum + bucket.unitsLeft, 0);
    return left > 0 || buckets.length === 1 ? left : this.#ports.units.count(sale);
  }
}

const itemOf = ({ saleId, sku, title, priceCents, currency, limitPerBuyer }: Sale) => ({
  saleId,
  sku,
  title,
  priceCents,
  currency,
  limitPerBuyer,
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
