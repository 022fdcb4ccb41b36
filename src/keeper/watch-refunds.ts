import type { KeeperMeters } from '../ports/keeper-meters.js';
import type { RefundBook } from '../ports/refund-book.js';
import type { Job } from './job.js';

export interface WatchRefundsPorts {
  readonly refunds: Pick<RefundBook, 'backlog'>;
  readonly meters: Pick<KeeperMeters, 'refundsDue'>;
}

/** Publishes what is owed to buyers, also where nobody is there to give it back. */
export function watchRefunds({ refunds, meters }: WatchRefundsPorts): Job {
  return {
    name: 'watch-refunds',
    async runOnce(): Promise<void> {
      const { due, oldestMs } = await refunds.backlog();
      meters.refundsDue(due, oldestMs);
    },
  };
}
