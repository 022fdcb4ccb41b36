import type { KeeperMetrics } from '../core/ports/keeper-metrics.js';
import type { Outbox } from '../core/ports/outbox.js';
import type { Job } from '../core/job.js';

export interface TidyOutboxPorts {
  readonly outbox: Pick<Outbox, 'removeDone'>;
  readonly metrics: Pick<KeeperMetrics, 'removed'>;
}

/** Rows of each kind that go in one step: some tens of ms. */
const ROWS_PER_STEP = 1_000;
/** Steps of one run. More rows than that wait for the next one. */
const STEPS_MAX = 20;

/** Removes rows that were done long ago, so that the table stays as large as a few sales. */
export function tidyOutbox({ outbox, metrics }: TidyOutboxPorts, options: { readonly keepMs: number }): Job {
  return {
    name: 'tidy-outbox',
    async runOnce(): Promise<void> {
      for (let steps = 1; steps <= STEPS_MAX; steps++) {
        const removed = await outbox.removeDone(options.keepMs, ROWS_PER_STEP);
        metrics.removed(removed);
        if (removed < ROWS_PER_STEP) return; // every kind has less than a step left
      }
    },
  };
}
