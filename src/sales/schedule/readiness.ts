import { askedBucketsOf } from '../../core/bucket.js';
import type { Sale } from '../../core/sale.js';
import type { SaleSnapshotCache } from '../../core/ports/sale-repository.js';
import type { StockStore, StoredSale } from '../../core/ports/stock-store.js';

/**
 * What a sale needs to sell as planned.
 * - `stock`: Redis lacks the data, repairs it, or differs from MySQL; the sale would sell wrongly and is not opened
 * - `apis`: the data that apis read differs from MySQL, for some seconds at most
 * - `topics`: the broker cannot be reached, or lacks a topic; purchases get 503
 */
type Need = 'stock' | 'apis' | 'topics';

export interface Missing {
  readonly need: Need;
  /** A sentence for the operator. */
  readonly detail: string;
}

export interface Readiness {
  readonly missing: readonly Missing[];
  /** The time of the sale's Redis server, which opens and closes the sale. Null if the sale is not loaded. */
  readonly redisNowMs: number | null;
}

/**
 * Checks a warmed sale. Stores its snapshot for the apis if none has asked for it yet.
 * @param topics returns what is wrong with the topics that a sale needs, or null; never rejects
 * @throws OperationalError redis
 */
export async function readinessOf(
  sale: Sale,
  store: StockStore,
  cache: SaleSnapshotCache,
  topics: () => Promise<string | null>,
): Promise<Readiness> {
  const { saleId } = sale;
  const [stored, cached, broken] = await Promise.all([
    Promise.all(askedBucketsOf(sale).map((ref) => store.readSale(ref))),
    cache.read(saleId),
    topics(),
  ]);
  const missing: Missing[] = [];
  const problem = stockProblem(sale, stored);
  if (problem !== null) missing.push({ need: 'stock', detail: problem });
  if (cached.cached === 'missing') await cache.write(saleId, sale);
  else if (cached.cached === 'absent' || !isSameOffer(cached.sale, sale)) {
    missing.push({
      need: 'apis',
      detail: 'apis still use an older state of the sale; they read it again within seconds',
    });
  }
  if (broken !== null) missing.push({ need: 'topics', detail: broken });
  return { missing, redisNowMs: stored.find((bucket) => bucket !== null)?.nowMs ?? null };
}

/** Returns the first problem, because later problems follow from it. Null if there is no problem. */
function stockProblem(sale: Sale, stored: readonly (StoredSale | null)[]): string | null {
  const of = (bucket: number): string => (sale.buckets === 1 ? '' : ` (bucket ${bucket} of ${sale.buckets})`);
  let units = 0;
  for (const [index, bucket] of stored.entries()) {
    if (bucket === null) return `the stock is not in Redis${of(index)}`;
    if (bucket.state === 'repair') return `the stock in Redis is being repaired, or waits for a repair${of(index)}`;
    if (bucket.epoch !== sale.epoch) return `the stock in Redis belongs to an older epoch${of(index)}`;
    if (bucket.state !== sale.state)
      return `the sale is ${bucket.state} in Redis, but ${sale.state} in MySQL${of(index)}`;
    if (bucket.opensAtMs !== sale.opensAtMs || bucket.closesAtMs !== sale.closesAtMs) {
      return `Redis and MySQL have different windows${of(index)}`;
    }
    units += bucket.unitsLeft;
  }
  const wanted = sale.stock - sale.sold;
  return units === wanted ? null : `Redis has ${units} units, but MySQL ${wanted}`;
}

const isSameOffer = (one: Sale, other: Sale): boolean =>
  one.state === other.state &&
  one.epoch === other.epoch &&
  one.buckets === other.buckets &&
  one.priceCents === other.priceCents &&
  one.limitPerBuyer === other.limitPerBuyer &&
  one.closesAtMs === other.closesAtMs;
