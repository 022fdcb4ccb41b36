import type { KeeperMeters } from '../core/ports/keeper-meters.js';
import type { SettlementLedger } from '../core/ports/settlement-ledger.js';
import type { Job } from '../core/job.js';
import { pendingBuckets, type PendingBucketsPorts } from './pending-buckets.js';

export interface WatchPendingPorts extends PendingBucketsPorts {
  readonly ledger: Pick<SettlementLedger, 'withPending' | 'pendingSummary'>;
  readonly meters: KeeperMeters;
}

/** Publishes how much is deducted and not settled. The broker's own gauge drifts; this one cannot. */
export function watchPending(ports: WatchPendingPorts): Job {
  return {
    name: 'watch-pending',
    async runOnce(): Promise<void> {
      let batches = 0;
      let oldestMs = 0;
      for (const ref of await pendingBuckets(ports)) {
        const summary = await ports.ledger.pendingSummary(ref);
        batches += summary.batches;
        oldestMs = Math.max(oldestMs, summary.oldestMs);
      }
      ports.meters.pending(batches, oldestMs);
    },
  };
}
