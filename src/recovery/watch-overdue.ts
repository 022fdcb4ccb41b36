import { WATCHED_STATES, type WatchedState, type AgedState, type OverdueRepository } from '../core/waiting-states.js';
import type { Job } from '../core/job.js';
import type { RecoveryMetrics } from './metrics.js';

/** The jobs watch-pending, watch-sales-in-repair and finish-transfers publish these states. */
const PUBLISHED_ELSEWHERE = ['batch_pending', 'sale_locked', 'units_in_transfer'] as const;
const isPublishedHere = (state: WatchedState): state is AgedState =>
  !PUBLISHED_ELSEWHERE.some((other) => other === state);

/**
 * Publishes, for each state, how many entries have stayed beyond its deadline. If a read fails, only its figures are
 * missing, and the run fails.
 * @param deadlines how long each state may last, ms
 */
export function watchOverdue(
  { repository, metrics }: { readonly repository: OverdueRepository; readonly metrics: RecoveryMetrics },
  deadlines: Readonly<Record<AgedState, number>>,
): Job {
  return {
    name: 'watch-overdue',
    async runOnce(): Promise<void> {
      const failures: unknown[] = [];
      for (const state of WATCHED_STATES.filter(isPublishedHere)) {
        try {
          const overdue = await repository.overdue(state, deadlines[state]);
          metrics.overdue(state, overdue.count, overdue.oldestMs);
        } catch (error) {
          failures.push(error);
        }
      }
      if (failures.length > 0) throw failures[0];
    },
  };
}
