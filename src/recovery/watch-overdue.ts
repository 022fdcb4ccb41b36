import {
  WATCHED_STATES,
  type WatchedState,
  type AgedState,
  type Overdue,
  type OverdueRepository,
} from '../core/waiting-states.js';
import type { OverdueOrders } from '../core/ports/order-transitions.js';
import type { Job } from '../core/job.js';
import type { RecoveryMetrics } from './metrics.js';

/** The jobs watch-pending, watch-sales-in-repair and finish-transfers publish these states. */
const PUBLISHED_ELSEWHERE = ['batch_pending', 'sale_shut', 'units_lent'] as const;
const isPublishedHere = (state: WatchedState): state is AgedState | 'pending_payment' =>
  !PUBLISHED_ELSEWHERE.some((other) => other === state);

/**
 * Publishes for each state how many entries are beyond its deadline. If a read fails, only its own figures are missing,
 * and the run counts as failed.
 * @param deadlines how long each state may last, ms
 */
export function watchOverdue(
  {
    transitions,
    repository,
    metrics,
  }: {
    readonly transitions: OverdueOrders;
    readonly repository: OverdueRepository;
    readonly metrics: RecoveryMetrics;
  },
  deadlines: Readonly<Record<AgedState, number>>,
): Job {
  const count = async (state: AgedState | 'pending_payment'): Promise<Overdue> => {
    if (state !== 'pending_payment') return repository.overdue(state, deadlines[state]);
    const { orders, oldestMs } = await transitions.overdue();
    return { count: orders, oldestMs };
  };
  return {
    name: 'watch-overdue',
    async runOnce(): Promise<'idle' | void> {
      const failures: unknown[] = [];
      let total = 0;
      for (const state of WATCHED_STATES.filter(isPublishedHere)) {
        try {
          const overdue = await count(state);
          metrics.overdue(state, overdue.count, overdue.oldestMs);
          total += overdue.count;
        } catch (error) {
          failures.push(error);
        }
      }
      if (failures.length > 0) throw failures[0];
      if (total === 0) return 'idle';
    },
  };
}
