import type { KeeperMeters } from '../ports/keeper-meters.js';
import type { ReleaseOutbox } from '../ports/outbox.js';
import type { SettlementLedger } from '../ports/settlement-ledger.js';
import type { Job } from './job.js';

export interface ReleaseUnitsPorts {
  readonly outbox: ReleaseOutbox;
  readonly ledger: Pick<SettlementLedger, 'release'>;
  readonly meters: KeeperMeters;
}

/**
 * Gives units back whose row has ended, as the outbox promised in the same transaction (protocol rule 7). Dying
 * between release and mark runs the row again, which finds the request `released` and does nothing.
 */
export function releaseUnits(ports: ReleaseUnitsPorts, options: { readonly max: number }): Job {
  return {
    name: 'release-units',
    async runOnce(): Promise<void> {
      for (const task of await ports.outbox.dueReleases(options.max)) {
        const words = await ports.ledger.release(task.releases);
        await ports.outbox.markDone([task.outboxId]);
        ports.meters.released(words.filter((word) => word === 'released').length);
      }
    },
  };
}
