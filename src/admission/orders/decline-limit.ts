import type { DeclineBound } from '../../core/ports/payment-attempts.js';
import type { AdmissionMetrics } from '../metrics.js';
import type { OrderRules } from './order-rules.js';

/** Returns the limits on declined charges of an order and a buyer, or null. @param rules called each time */
export function declineBound(rules: () => OrderRules, metrics: AdmissionMetrics): DeclineBound | null {
  const { mode, perOrder, perBuyerHour } = rules().declines;
  if (mode === 'off') return null;
  return {
    perOrder,
    perBuyerHour,
    refuses(): boolean {
      metrics.refused('orders', 'decline_limit_reached', mode);
      return mode === 'on';
    },
  };
}
