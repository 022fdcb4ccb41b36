import type { KeeperMeters } from '../core/ports/keeper-meters.js';
import type { Outbox } from '../core/ports/outbox.js';
import type { Job } from '../core/job.js';

export interface WatchOutboxPorts {
  readonly outbox: Pick<Outbox, 'backlog'>;
  readonly meters: Pick<KeeperMeters, 'backlog'>;
}

/** Publishes how much the outbox still has to do. What grows old there is an outage or a row that somebody broke. */
export function watchOutbox({ outbox, meters }: WatchOutboxPorts): Job {
  return {
    name: 'watch-outbox',
    async runOnce(): Promise<void> {
      for (const backlog of await outbox.backlog()) meters.backlog(backlog);
    },
  };
}
