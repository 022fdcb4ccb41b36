import type { KeeperMetrics } from '../core/ports/keeper-metrics.js';
import type { Outbox } from '../core/ports/outbox.js';
import type { Job } from '../core/job.js';

export interface WatchOutboxPorts {
  readonly outbox: Pick<Outbox, 'backlog'>;
  readonly metrics: Pick<KeeperMetrics, 'backlog'>;
}

/** Publishes how much the outbox still has to do. What grows old there is an outage or a row that somebody broke. */
export function watchOutbox({ outbox, metrics }: WatchOutboxPorts): Job {
  return {
    name: 'watch-outbox',
    async runOnce(): Promise<void> {
      for (const backlog of await outbox.backlog()) metrics.backlog(backlog);
    },
  };
}
