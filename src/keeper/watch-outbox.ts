import type { KeeperMeters } from '../ports/keeper-meters.js';
import type { Outbox } from '../ports/outbox.js';
import type { Job } from './job.js';

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
