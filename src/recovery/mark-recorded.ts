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
  /** A younger batch may still be in the hands of a worker, ms. */
  readonly afterMs: number;
  /** Batches of one bucket in one run. */
  readonly maxPerBucket: number;
}

/**
 * Marks batches as recorded that MySQL has and Redis still holds in `pending`: a worker died, or lost Redis, between
 * COMMIT and the mark. Most that wait there were never written; of these only the ids are read, and the next run goes on
 * behind them, round and round.
 */
export function markRecorded(ports: MarkRecordedPorts, options: MarkRecordedOptions): Job {
  /** How many of the oldest batches of a bucket the next run passes over. */
  let skipped: ReadonlyMap<string, number> = new Map();
  return {
    name: 'mark-recorded',
    async runOnce(): Promise<void> {
      const faults = new BucketFaults(); // also that of a sale which is being rebuilt
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

/** @returns how many of the oldest the next run passes over: it begins anew behind the last one */
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
    if (decoded?.outcome !== 'decoded') continue; // redrive reports it
    if ((await markIfRecorded(decoded.batch, { repository, store })) === null) continue; // the worker decides
    metrics.markedLate(1);
    marked++;
  }
  return looked < maxPerBucket ? 0 : skip + looked - marked;
}
