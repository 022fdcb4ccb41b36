import { createHash } from 'node:crypto';
import type { PaymentProvider } from '../ports/payment-provider.js';

/** Keys that start so are answered so, for demonstrations and tests; every other key succeeds. */
export const SIMULATED_DECLINE = 'decline';
export const SIMULATED_LOST_ANSWER = 'unknown';

/**
 * A payment simulator: no money moves, nobody is asked. It keeps no state: what it answers follows from order and key,
 * so a repeated charge is the same payment. Its payment ids start with `simulated-`, wherever they show up.
 */
export function createPaymentSimulator(): PaymentProvider {
  return {
    async charge(orderId, amountCents, key) {
      if (key.startsWith(SIMULATED_DECLINE)) return { outcome: 'declined' };
      if (key.startsWith(SIMULATED_LOST_ANSWER)) return { outcome: 'unknown' };
      const id = createHash('sha256').update(`${orderId}/${key}`).digest('base64url');
      return { outcome: 'succeeded', payment: { paymentId: `simulated-${id}`, amountCents } };
    },
    async refund(_paymentId, _amountCents, key) {
      if (key.startsWith(SIMULATED_DECLINE)) return { outcome: 'refused', detail: 'simulated' };
      return { outcome: key.startsWith(SIMULATED_LOST_ANSWER) ? 'unknown' : 'refunded' };
    },
  };
}
