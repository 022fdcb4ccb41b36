import type { DeclineBound } from '../../core/ports/payment-attempts.js';
import type { AdmissionMetrics } from '../metrics.js';
import type { OrderRules } from './order-rules.js';

/**
 * Returns the limits on declined charges of an order and of a buyer, under the current rules. Null if there are none.
 * @param rules called each time the rules are needed
 */
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
