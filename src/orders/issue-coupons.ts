import { decodeOrderEvents } from '../core/order-event.js';
import type { CouponRepository } from '../core/ports/coupon-repository.js';
import type { KeeperMetrics } from '../core/ports/keeper-metrics.js';
import type { Consumed } from './consume.js';

export interface IssueCouponsPorts {
  readonly coupons: Pick<CouponRepository, 'issue'>;
  readonly metrics: Pick<KeeperMetrics, 'couponsIssued'>;
}

/** One coupon for each order that was paid. The row decides, not the event: it may come twice, or before its time. */
export function issueCoupons({ coupons, metrics }: IssueCouponsPorts) {
  return async (body: string): Promise<Consumed> => {
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
