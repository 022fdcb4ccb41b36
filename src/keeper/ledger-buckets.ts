import type { SaleBook } from '../ports/sale-book.js';
import type { BucketRef } from '../ports/stock-ledger.js';

/** Sales looked at in one run, newest first. */
const SALES_MAX = 500;

/** Every bucket that may hold units: a closed sale still has batches on their way. */
export async function ledgerBuckets(sales: Pick<SaleBook, 'list'>): Promise<BucketRef[]> {
  const loaded = await sales.list({ states: ['warm', 'open', 'paused', 'closed'], max: SALES_MAX });
  return loaded.flatMap(({ saleId, buckets }) => Array.from({ length: buckets }, (_, bucket) => ({ saleId, bucket })));
}
