import type { KeeperMetrics } from '../core/ports/keeper-metrics.js';
import type { OrderTransitions } from '../core/ports/order-transitions.js';
import type { Job } from '../core/job.js';

export interface ExpireOrdersPorts {
  readonly moves: Pick<OrderTransitions, 'expireDue'>;
  readonly metrics: KeeperMetrics;
}

/** Orders that are asked for at once, so that what is done is counted, also when the next step fails. */
const STEP = 500;

/**
 * Ends unpaid orders whose deadline has passed, oldest first, until none is left or `max` are done. Their units go back
 * by the outbox. Dying in the middle leaves the rest to the next run; two keepers share the work.
 */
export function expireOrders({ moves, metrics }: ExpireOrdersPorts, options: { readonly max: number }): Job {
  return {
    name: 'expire-orders',
    async runOnce(): Promise<void> {
      for (let left = options.max; left > 0;) {
        const step = Math.min(STEP, left);
        const ended = await moves.expireDue(step);
        metrics.expired(ended);
        left -= ended;
        if (ended < step) break;
      }
    },
  };
}
