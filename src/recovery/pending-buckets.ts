import type { Job } from '../core/job.js';
import type { BatchStore } from '../core/ports/batch-store.js';
import type { SaleRepository } from '../core/ports/sale-repository.js';
import type { Clock } from '../core/ports/clock.js';
import { type BucketRef, bucketRefName, bucketRefsOf } from '../core/bucket.js';
import { BucketFaults } from '../core/bucket-faults.js';
import { recent } from '../core/recent.js';
import { listSalesInRedis } from '../sales/list-sales-in-redis.js';
import type { RecoveryMetrics } from './metrics.js';

/**
 * Finds buckets with batches that are deducted but not marked as recorded, also of closed sales. For sales at rest,
 * only a count is read.
 * @param faults collects the faults of buckets that did not answer
 */
export async function pendingBuckets(
  { sales, store }: { readonly sales: SaleRepository; readonly store: BatchStore },
  faults: BucketFaults,
): Promise<readonly BucketRef[]> {
  const refs = (await listSalesInRedis(sales)).flatMap(bucketRefsOf);
  const found = await store.withPending(refs);
  for (const fault of found.faults) faults.add(fault);
  return found.refs;
}

const KEPT_MS = 500;

/** Reads the buckets with pending batches only once for all jobs that ask for the same buckets at about the same time. */
export function sharePending(store: BatchStore, clock: Clock): BatchStore {
  let shared = { names: '', ask: recent(() => store.withPending([]), KEPT_MS, clock) };
  const withPending: BatchStore['withPending'] = (refs) => {
    const names = refs.map(bucketRefName).join(' ');
    if (names !== shared.names) shared = { names, ask: recent(() => store.withPending(refs), KEPT_MS, clock) };
    return shared.ask();
  };
  return { ...store, withPending };
}

/**
 * Publishes how many batches are deducted but not marked as recorded, and how many are overdue, over the buckets that
 * answer. Unlike the broker's own gauge, this one cannot drift.
 * @param overdueAfterMs age from which a batch is overdue
 */
export function watchPending(
  {
    sales,
    store,
    metrics,
  }: { readonly sales: SaleRepository; readonly store: BatchStore; readonly metrics: RecoveryMetrics },
  { overdueAfterMs }: { readonly overdueAfterMs: number },
): Job {
  return {
    name: 'watch-pending',
    async runOnce(): Promise<'idle' | void> {
      const faults = new BucketFaults();
      const pending = { batches: 0, oldestMs: 0 };
      const overdue = { batches: 0, oldestMs: 0 };
      const add = (sum: typeof pending, found: Awaited<ReturnType<BatchStore['pendingSummary']>>): void => {
        sum.batches += found.batches;
        sum.oldestMs = Math.max(sum.oldestMs, found.oldestMs);
      };
      await faults.forEach(await pendingBuckets({ sales, store }, faults), async (ref) => {
        add(pending, await store.pendingSummary(ref));
        add(overdue, await store.overduePending(ref, overdueAfterMs));
      });
      metrics.pending(pending.batches, pending.oldestMs);
      metrics.overdue('batch_pending', overdue.batches, overdue.oldestMs);
      faults.throwIfAny();
      if (pending.batches === 0) return 'idle';
    },
  };
}
