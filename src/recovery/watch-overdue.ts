import type { AgedState, OverdueRepository } from '../core/waiting-states.js';
import type { Job } from '../core/job.js';
import type { RecoveryMetrics } from './metrics.js';

/**
 * Publishes, for each state, how many entries have stayed beyond its deadline. The jobs watch-pending,
 * watch-sales-in-repair and finish-transfers publish the other states.
 * @param deadlines how long each state may last, ms
 */
export function watchOverdue(
  { repository, metrics }: { readonly repository: OverdueRepository; readonly metrics: RecoveryMetrics },
  deadlines: Readonly<Record<AgedState, number>>,
): Job {
  return {
    name: 'watch-overdue',
    async runOnce(): Promise<void> {
      const overdue = await repository.overdue(deadlines);
      for (const state of Object.keys(overdue) as AgedState[])
        metrics.overdue(state, overdue[state].count, overdue[state].oldestMs);
    },
  };
}
