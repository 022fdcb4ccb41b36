import type { KeeperMetrics } from '../core/ports/keeper-metrics.js';
import type { BatchStore } from '../core/ports/batch-store.js';
import type { Job } from '../core/job.js';
import { pendingBuckets, type PendingBucketsPorts } from './pending-buckets.js';

export interface WatchPendingPorts extends PendingBucketsPorts {
  readonly store: Pick<BatchStore, 'withPending' | 'pendingSummary'>;
  readonly metrics: KeeperMetrics;
}

/** Publishes how much is deducted and not settled. The broker's own gauge drifts; this one cannot. */
export function watchPending(ports: WatchPendingPorts): Job {
  return {
    name: 'watch-pending',
    async runOnce(): Promise<void> {
      let batches = 0;
      let oldestMs = 0;
      for (const ref of await pendingBuckets(ports)) {
        const summary = await ports.store.pendingSummary(ref);
        batches += summary.batches;
        oldestMs = Math.max(oldestMs, summary.oldestMs);
      }
      ports.metrics.pending(batches, oldestMs);
    },
  };
}
