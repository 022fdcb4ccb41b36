import { decodeBatch } from '../core/batch.js';
import type { OrderRepository } from '../core/ports/order-repository.js';
import type { BatchStore } from '../core/ports/batch-store.js';
import { type BucketRef, bucketRefName } from '../core/bucket.js';
import { BucketFaults } from '../core/bucket-faults.js';
import type { Job } from '../core/job.js';
import { markIfRecorded } from './mark-if-recorded.js';
import type { RecoveryMetrics } from './metrics.js';
import { pendingBuckets, type PendingBucketsPorts } from './pending-buckets.js';

interface MarkRecordedPorts extends PendingBucketsPorts {
  readonly store: Pick<BatchStore, 'withPending' | 'stalePending' | 'markRecorded'>;
  readonly repository: Pick<OrderRepository, 'writtenBatches' | 'findByPurchases'>;
  readonly metrics: RecoveryMetrics;
}

interface MarkRecordedOptions {
  /** Minimum age of a batch, ms. A worker may still be processing a younger batch. */
  readonly afterMs: number;
  /** Maximum number of batches per bucket and run. */
  readonly maxPerBucket: number;
}

/**
 * Marks batches as recorded that are in MySQL and still in `pending`: a worker died, or lost Redis, between COMMIT and
 * the mark. Most batches in `pending` were never written. For these only the ids are read, and each run continues where
 * the last run ended, in rotation.
 */
export function markRecorded(ports: MarkRecordedPorts, options: MarkRecordedOptions): Job {
  /** How many of the oldest batches of a bucket the next run skips. */
  let skipped: ReadonlyMap<string, number> = new Map();
  return {
    name: 'mark-recorded',
    async runOnce(): Promise<void> {
      const faults = new BucketFaults(); // includes the fault of a sale that is being rebuilt
      const next = new Map<string, number>();
      await faults.forEach(await pendingBuckets(ports, faults), async (ref) => {
        const name = bucketRefName(ref);
        const goOn = await markBucket(ref, ports, { ...options, skip: skipped.get(name) ?? 0 });
        if (goOn > 0) next.set(name, goOn);
      });
      skipped = next;
      faults.throwIfAny();
    },
  };
}

/** @returns how many of the oldest batches the next run skips: 0 after the last one */
async function markBucket(
  ref: BucketRef,
  { store, repository, metrics }: MarkRecordedPorts,
  { afterMs, maxPerBucket, skip }: MarkRecordedOptions & { readonly skip: number },
): Promise<number> {
  let looked = 0;
  let marked = 0;
  const written = (batchIds: readonly string[]): Promise<Set<string>> => {
    looked = batchIds.length;
    return repository.writtenBatches(batchIds);
  };
  for (const { body } of await store.stalePending(ref, afterMs, maxPerBucket, written, skip)) {
    const decoded = body === null ? null : decodeBatch(body);
    if (decoded?.outcome !== 'decoded') continue; // redrive logs the fault
    if ((await markIfRecorded(decoded.batch, { repository, store })) === null) continue; // left to the worker
    metrics.markedLate(1);
    marked++;
  }
  return looked < maxPerBucket ? 0 : skip + looked - marked;
}
