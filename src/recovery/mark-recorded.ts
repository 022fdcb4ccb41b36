import { batchIn } from '../core/batch.js';
import type { OrderRepository } from '../core/ports/order-repository.js';
import type { SaleRepository } from '../core/ports/sale-repository.js';
import type { BatchStore } from '../core/ports/batch-store.js';
import { type BucketRef, bucketRefName } from '../core/bucket.js';
import { BucketFaults } from '../core/bucket-faults.js';
import type { Job } from '../core/job.js';
import { markIfRecorded } from './mark-if-recorded.js';
import type { RecoveryMetrics } from './metrics.js';
import { pendingBuckets } from './pending-buckets.js';

/**
 * Marks batches that are in MySQL but still in `pending`, because a worker died or lost Redis between COMMIT and
 * `markRecorded`. Most pending batches are not written yet, so only their ids are read. Each run continues where the
 * last one ended, in rotation.
 * @param afterMs minimum age of a batch: a worker may still process a younger one
 * @param maxPerBucket maximum number of batches per bucket and run
 */
export function markRecorded(
  {
    sales,
    store,
    repository,
    metrics,
  }: {
    readonly sales: SaleRepository;
    readonly store: BatchStore;
    readonly repository: OrderRepository;
    readonly metrics: RecoveryMetrics;
  },
  { afterMs, maxPerBucket }: { readonly afterMs: number; readonly maxPerBucket: number },
): Job {
  /** How many of the oldest batches of a bucket the next run skips. */
  let skipped: ReadonlyMap<string, number> = new Map();

  /** @returns the same number for this bucket; 0 after the last batch */
  const markBucket = async (ref: BucketRef, skip: number): Promise<number> => {
    let looked = 0;
    let marked = 0;
    const written = (batchIds: readonly string[]): Promise<Set<string>> => {
      looked = batchIds.length;
      return repository.writtenBatches(batchIds);
    };
    for (const { body } of await store.stalePending(ref, afterMs, maxPerBucket, written, skip)) {
      const batch = batchIn(body);
      if (batch === null) continue; // redrive logs the fault
      if ((await markIfRecorded(batch, { repository, store })) === null) continue; // left to the worker
      metrics.markedLate(1);
      marked++;
    }
    return looked < maxPerBucket ? 0 : skip + looked - marked;
  };

  return {
    name: 'mark-recorded',
    async runOnce(): Promise<void> {
      const faults = new BucketFaults(); // includes the fault that a sale is being rebuilt
      const next = new Map<string, number>();
      await faults.forEach(await pendingBuckets({ sales, store }, faults), async (ref) => {
        const name = bucketRefName(ref);
        const goOn = await markBucket(ref, skipped.get(name) ?? 0);
        if (goOn > 0) next.set(name, goOn);
      });
      skipped = next;
      faults.throwIfAny();
    },
  };
}
