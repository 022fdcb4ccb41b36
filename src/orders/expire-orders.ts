import type { Job } from '../core/job.js';
import { decodePaymentDeadline } from '../core/payment-deadline.js';
import type { OrderStates, OrderTransitions } from '../core/ports/order-transitions.js';
import { type ClockWatch, whileClocksAgree } from './clock-watch.js';
import type { MessageResult } from './consume-messages.js';
import type { OrderJobMetrics } from './metrics.js';

// An unpaid order expires in two ways: by a delayed message of the broker, and by a sweep over MySQL in case the
// message was lost. MySQL's clock decides, as long as the other clocks agree. The outbox returns the units.

/** Ends the unpaid orders in a deadline message. If one is not due or not written yet, the message is redelivered. */
export function expireByMessage({
  transitions,
  orders,
  clocks,
  metrics,
}: {
  readonly transitions: OrderTransitions;
  readonly orders: OrderStates;
  readonly clocks: ClockWatch;
  readonly metrics: OrderJobMetrics;
}) {
  return async (body: string): Promise<MessageResult> => {
    const decoded = decodePaymentDeadline(body);
    if (decoded.outcome !== 'decoded') return decoded;
    const { orders: orderIds } = decoded.deadline;
    await clocks.agree();
    const ended = await transitions.expire(orderIds);
    metrics.expired(ended);
    if (ended === orderIds.length) return { outcome: 'done' };
    const states = await orders.statesOf(orderIds);
    const open = orderIds.filter((orderId) => (states.get(orderId) ?? 'pending_payment') === 'pending_payment');
    if (open.length === 0) return { outcome: 'done' };
    return { outcome: 'later', why: `${open.length} of ${orderIds.length} orders are not due, or not there` };
  };
}

/** Number of orders per transaction. Finished transactions are counted even if a later one fails. */
const ORDERS_PER_STEP = 500;

/** Ends at most `max` unpaid orders past their deadline, oldest first. Keepers share this; the next run continues. */
export function expireBySweep(
  {
    transitions,
    clocks,
    metrics,
  }: {
    readonly transitions: OrderTransitions;
    readonly clocks: ClockWatch;
    readonly metrics: OrderJobMetrics;
  },
  { max }: { readonly max: number },
): Job {
  return whileClocksAgree(clocks, {
    name: 'expire-orders',
    async runOnce(): Promise<void> {
      for (let left = max; left > 0;) {
        const step = Math.min(ORDERS_PER_STEP, left);
        const ended = await transitions.expireDue(step);
        metrics.expired(ended);
        left -= ended;
        if (ended < step) break;
      }
    },
  });
}
