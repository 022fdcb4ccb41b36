import type { SaleBook } from '../ports/sale-book.js';
import type { SettlementLedger } from '../ports/settlement-ledger.js';
import type { BucketRef } from '../ports/stock-ledger.js';

/** All that may still sell; more at once is no use of this system. */
const LIVE_SALES_MAX = 10_000;
/** Of those that are over, the newest: what they had under way has ended after days. */
const CLOSED_SALES_MAX = 500;

export interface PendingBucketsPorts {
  readonly sales: Pick<SaleBook, 'list'>;
  readonly ledger: Pick<SettlementLedger, 'withPending'>;
}

/**
 * Every bucket with a batch that is deducted and not settled. A closed sale still has batches on their way; of hundreds
 * of sales at rest only their number is read.
 */
export async function pendingBuckets({ sales, ledger }: PendingBucketsPorts): Promise<BucketRef[]> {
  const live = await sales.list({ states: ['warm', 'open', 'paused'], max: LIVE_SALES_MAX });
  const closed = await sales.list({ states: ['closed'], max: CLOSED_SALES_MAX });
  const refs = [...live, ...closed].flatMap(({ saleId, buckets }) =>
    Array.from({ length: buckets }, (_, bucket) => ({ saleId, bucket })),
  );
  return ledger.withPending(refs);
}
