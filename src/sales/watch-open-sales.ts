import { askedBucketsOf } from '../core/bucket.js';
import { OperationalError } from '../core/errors.js';
import { publishedByOne, type Job, type LeaseOptions } from '../core/job.js';
import type { JobLeases } from '../core/ports/job-leases.js';
import type { SaleRepository } from '../core/ports/sale-repository.js';
import type { StockStore } from '../core/ports/stock-store.js';
import type { Sale } from '../core/sale.js';
import type { SaleMetrics } from './metrics.js';
import { unitsLeftIn } from './sale-units.js';

/** Maximum number of sales named, because each is a label of a metric. */
export const OPEN_SALES_MAX = 20;

export interface SaleUnits {
  readonly saleId: string;
  readonly stock: number;
  /** Units of orders in MySQL that hold units. */
  readonly sold: number;
  /** Units in all buckets. Null if a bucket is missing, in repair, or cannot be read. */
  readonly left: number | null;
}

interface WatchOpenSalesPorts {
  readonly leases: JobLeases;
  readonly sales: SaleRepository;
  readonly store: StockStore;
  readonly metrics: SaleMetrics;
}

export function watchOpenSales({ leases, sales, store, metrics }: WatchOpenSalesPorts, options: LeaseOptions): Job {
  const unitsOf = async (sale: Sale): Promise<SaleUnits> => {
    const { saleId, stock, sold } = sale;
    return { saleId, stock, sold, left: await unitsLeft(sale, store) };
  };
  return publishedByOne('watch-open-sales', leases, options, {
    look: async () => {
      const open = await sales.list({ states: ['open', 'paused'], max: OPEN_SALES_MAX });
      return Promise.all(open.map(unitsOf));
    },
    publish: (units) => metrics.openSales(units ?? []),
  });
}

/** Null if a Redis server does not answer, so other sales need not wait for it. */
async function unitsLeft(sale: Sale, store: WatchOpenSalesPorts['store']): Promise<number | null> {
  try {
    return unitsLeftIn(await Promise.all(askedBucketsOf(sale).map((ref) => store.readSale(ref))));
  } catch (error) {
    if (error instanceof OperationalError) return null;
    throw error;
  }
}
