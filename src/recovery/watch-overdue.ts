import {
  WATCHED_STATES,
  type WatchedState,
  type AgedState,
  type Overdue,
  type OverdueRepository,
} from '../core/waiting-states.js';
import type { OverdueOrders } from '../core/ports/order-transitions.js';
import type { BatchStore } from '../core/ports/batch-store.js';
import { BucketFaults } from '../core/bucket-faults.js';
import type { Job } from '../core/job.js';
import type { RecoveryMetrics } from './metrics.js';
import { pendingBuckets, type PendingBucketsPorts } from './pending-buckets.js';

export interface WatchOverduePorts extends PendingBucketsPorts {
  readonly store: Pick<BatchStore, 'withPending' | 'overduePending'>;
  readonly transitions: OverdueOrders;
  readonly repository: OverdueRepository;
  readonly metrics: RecoveryMetrics;
}

/** How long each state may last, ms. */
export interface OverdueDeadlines extends Readonly<Record<AgedState, number>> {
  readonly batch_pending: number;
}

/** The jobs watch-sales-in-repair and finish-transfers publish these two states. */
type PublishedElsewhere = 'sale_locked' | 'units_in_transfer';

/**
 * Publishes for each state how many entries are beyond its deadline. If a store, or one of the Redis servers, does not
 * answer, only its own figures are missing, and the run counts as failed.
 */
export function watchOverdue(ports: WatchOverduePorts, deadlines: OverdueDeadlines): Job {
  const count = async (state: Exclude<WatchedState, PublishedElsewhere>, faults: BucketFaults): Promise<Overdue> => {
    if (state === 'batch_pending') return lateBatches(ports, deadlines.batch_pending, faults);
    if (state !== 'pending_payment') return ports.repository.overdue(state, deadlines[state]);
    const { orders, oldestMs } = await ports.transitions.overdue();
    return { count: orders, oldestMs };
  };
  return {
    name: 'watch-overdue',
    async runOnce(): Promise<'idle' | void> {
      const failures: unknown[] = [];
      const faults = new BucketFaults();
      let total = 0;
      for (const state of WATCHED_STATES) {
        if (state === 'sale_locked' || state === 'units_in_transfer') continue;
        try {
          const overdue = await count(state, faults);
          ports.metrics.overdue(state, overdue.count, overdue.oldestMs);
          total += overdue.count;
        } catch (error) {
          failures.push(error);
        }
      }
      if (failures.length > 0) throw failures[0];
      faults.throwIfAny();
      if (total === 0) return 'idle';
    },
  };
}

/** Counts late batches over the buckets that answer. */
async function lateBatches(ports: WatchOverduePorts, afterMs: number, faults: BucketFaults): Promise<Overdue> {
  let [count, oldestMs] = [0, 0];
  await faults.forEach(await pendingBuckets(ports, faults), async (ref) => {
    const late = await ports.store.overduePending(ref, afterMs);
    count += late.batches;
    oldestMs = Math.max(oldestMs, late.oldestMs);
  });
  return { count, oldestMs };
}
