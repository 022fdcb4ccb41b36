import { decodeOrderEvents } from '../core/order-event.js';
import type { CouponRepository } from '../core/ports/order-repository.js';
import type { MessageResult } from './consume-messages.js';
import type { OrderJobMetrics } from './metrics.js';

/** MySQL decides whether an order is paid, not the event, which may arrive twice or too early. */
export function issueCoupons(coupons: CouponRepository, metrics: OrderJobMetrics) {
  return async (body: string): Promise<MessageResult> => {
    const decoded = decodeOrderEvents(body);
    if (decoded.outcome !== 'decoded') return decoded;
    const paid = decoded.events.flatMap(({ type, orders }) => (type === 'order.paid' ? orders : []));
    if (paid.length === 0) return { outcome: 'done' };
    const { issued, unpaid } = await coupons.issue(paid);
    metrics.couponsIssued(issued);
    if (unpaid.length === 0) return { outcome: 'done' };
    return { outcome: 'later', why: `${unpaid.length} of ${paid.length} orders are not paid, or not there` };
  };
}
