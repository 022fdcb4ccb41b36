import type { SaleBook } from '../ports/sale-book.js';
import type { BucketRef } from '../ports/stock-ledger.js';

/** All that may still sell; more at once is no use of this system. */
const LIVE_SALES_MAX = 10_000;
/** Of those that are over, the newest: what they had under way has ended after days. */
const CLOSED_SALES_MAX = 500;

/** Every bucket that may hold units: a closed sale still has batches on their way. */
export async function ledgerBuckets(sales: Pick<SaleBook, 'list'>): Promise<BucketRef[]> {
  const live = await sales.list({ states: ['warm', 'open', 'paused'], max: LIVE_SALES_MAX });
  const closed = await sales.list({ states: ['closed'], max: CLOSED_SALES_MAX });
  return [...live, ...closed].flatMap(({ saleId, buckets }) =>
    Array.from({ length: buckets }, (_, bucket) => ({ saleId, bucket })),
  );
}
