import { askedBucketsOf } from '../../core/bucket.js';
import type { Sale } from '../../core/sale.js';
import type { SaleSnapshotCache } from '../../core/ports/sale-repository.js';
import type { StockStore, StoredSale } from '../../core/ports/stock-store.js';

/**
 * What a sale still needs before it can sell as it was planned.
 * - `stock`: its data in Redis is missing, in repair, or not what MySQL has; it would sell wrongly, and is not opened
 * - `apis`: what apis read of the sale is not what MySQL has; it lasts some seconds at most
 * - `topics`: the broker cannot be reached, or lacks a topic; purchases get 503
 */
type Need = 'stock' | 'apis' | 'topics';

export interface Missing {
  readonly need: Need;
  /** A sentence for a person. */
  readonly detail: string;
}

export interface Readiness {
  readonly missing: readonly Missing[];
  /** The time of the Redis server of the sale, which opens and closes it; null where it is not loaded. */
  readonly redisNowMs: number | null;
}

export interface ReadinessPorts {
  readonly store: Pick<StockStore, 'readSale'>;
  readonly cache: SaleSnapshotCache;
  /** What is wrong with the topics that a sale needs; null: nothing. Never rejects. */
  readonly topics: () => Promise<string | null>;
}

/**
 * Checks a sale that is warm or further. A snapshot that no api has asked for is put where apis read it.
 * @throws OperationalError redis
 */
export async function readinessOf(sale: Sale, { store, cache, topics }: ReadinessPorts): Promise<Readiness> {
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
      detail: 'apis still read an older state of the sale; they read it again within seconds',
    });
  }
  if (broken !== null) missing.push({ need: 'topics', detail: broken });
  return { missing, redisNowMs: stored.find((bucket) => bucket !== null)?.nowMs ?? null };
}

/** The first one is enough: those behind it follow from it. @returns null: there is none */
function stockProblem(sale: Sale, stored: readonly (StoredSale | null)[]): string | null {
  const of = (bucket: number): string => (sale.buckets === 1 ? '' : ` (bucket ${bucket} of ${sale.buckets})`);
  let units = 0;
  for (const [index, bucket] of stored.entries()) {
    if (bucket === null) return `the stock is not in Redis${of(index)}`;
    if (bucket.state === 'repair') return `the stock in Redis is being repaired, or waits for it${of(index)}`;
    if (bucket.epoch !== sale.epoch) return `the stock in Redis is of an older epoch${of(index)}`;
    if (bucket.state !== sale.state) return `Redis has it as ${bucket.state}, MySQL as ${sale.state}${of(index)}`;
    if (bucket.opensAtMs !== sale.opensAtMs || bucket.closesAtMs !== sale.closesAtMs) {
      return `Redis has another window than MySQL${of(index)}`;
    }
    units += bucket.unitsLeft;
  }
  const wanted = sale.stock - sale.sold;
  return units === wanted ? null : `Redis has ${units} units, MySQL ${wanted}`;
}

const isSameOffer = (one: Sale, other: Sale): boolean =>
  one.state === other.state &&
  one.epoch === other.epoch &&
  one.buckets === other.buckets &&
  one.priceCents === other.priceCents &&
  one.limitPerBuyer === other.limitPerBuyer &&
  one.closesAtMs === other.closesAtMs;
