import type { Job } from '../../core/job.js';
import type { OverdueRepository } from '../../core/waiting-states.js';
import type { RecoveryMetrics } from '../../recovery/metrics.js';

/**
 * Publishes how many dead letters wait for an operator, as soon as they are parked. A dead letter that waits too long
 * is also reported as overdue.
 */
export function watchParked({
  repository,
  metrics,
}: {
  readonly repository: OverdueRepository;
  readonly metrics: Pick<RecoveryMetrics, 'deadLettersParked'>;
}): Job {
  return {
    name: 'watch-parked',
    async runOnce(): Promise<void> {
      metrics.deadLettersParked((await repository.overdue('dead_letter', 0)).count);
    },
  };
}
