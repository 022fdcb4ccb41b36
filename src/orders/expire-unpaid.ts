import { decodePaymentDeadline } from '../core/payment-deadline.js';
import type { KeeperMetrics } from '../core/ports/keeper-metrics.js';
import type { OrderTransitions } from '../core/ports/order-transitions.js';
import type { OrderStates } from '../core/ports/order-states.js';
import type { Consumed } from './consume.js';

export interface ExpireUnpaidPorts {
  readonly moves: Pick<OrderTransitions, 'expire'>;
  readonly orders: Pick<OrderStates, 'statesOf'>;
  readonly metrics: Pick<KeeperMetrics, 'expired'>;
}

/**
 * Ends the orders of a deadline that are still unpaid. The rows decide, on the time of MySQL: an order that is not past
 * its own deadline, or not there yet, is left alone and the message comes again.
 */
export function expireUnpaid({ moves, orders, metrics }: ExpireUnpaidPorts) {
  return async (body: string): Promise<Consumed> => {
    const decoded = decodePaymentDeadline(body);
    if (decoded.outcome !== 'decoded') return decoded;
    const { orders: orderIds } = decoded.deadline;
    const ended = await moves.expire(orderIds);
    metrics.expired(ended);
    if (ended === orderIds.length) return { outcome: 'done' };
    const states = await orders.statesOf(orderIds);
    const open = orderIds.filter((orderId) => (states.get(orderId) ?? 'pending_payment') === 'pending_payment');
    if (open.length === 0) return { outcome: 'done' };
    return { outcome: 'later', why: `${open.length} of ${orderIds.length} orders are not due, or not there` };
  };
}
