import type { Job } from '../core/job.js';
import type { BatchStore } from '../core/ports/batch-store.js';
import type { SaleRepository } from '../core/ports/sale-repository.js';
import { type BucketRef, bucketRefsOf } from '../core/bucket.js';
import { BucketFaults } from '../core/bucket-faults.js';
import { listSalesInRedis } from '../sales/list-sales-in-redis.js';
import type { RecoveryMetrics } from './metrics.js';

/** Maximum number of closed sales to read, last closed first. */
const CLOSED_MAX = 10_000;

export interface PendingBucketsPorts {
  readonly sales: SaleRepository;
  readonly store: Pick<BatchStore, 'withPending'>;
}

/**
 * Finds every bucket with a batch that is deducted and not marked as recorded. Closed sales are included, since batches
 * may still be under way. For sales at rest only a count is read.
 * @param faults collects the faults of buckets that did not answer
 */
export async function pendingBuckets(
  { sales, store }: PendingBucketsPorts,
  faults: BucketFaults,
): Promise<readonly BucketRef[]> {
  const refs = (await listSalesInRedis(sales, { closedMax: CLOSED_MAX })).flatMap(bucketRefsOf);
  const found = await store.withPending(refs);
  for (const fault of found.faults) faults.add(fault);
  return found.refs;
}

export interface WatchPendingPorts extends PendingBucketsPorts {
  readonly store: Pick<BatchStore, 'withPending' | 'pendingSummary'>;
  readonly metrics: RecoveryMetrics;
}

/**
 * Publishes how many batches are deducted and not marked as recorded, over the buckets that answer. The gauge of the
 * broker drifts, this one cannot.
 */
export function watchPending(ports: WatchPendingPorts): Job {
  return {
    name: 'watch-pending',
    async runOnce(): Promise<'idle' | void> {
      const faults = new BucketFaults();
      let batches = 0;
      let oldestMs = 0;
      await faults.forEach(await pendingBuckets(ports, faults), async (ref) => {
        const summary = await ports.store.pendingSummary(ref);
        batches += summary.batches;
        oldestMs = Math.max(oldestMs, summary.oldestMs);
      });
      ports.metrics.pending(batches, oldestMs);
      faults.throwIfAny();
      if (batches === 0) return 'idle';
    },
  };
}
