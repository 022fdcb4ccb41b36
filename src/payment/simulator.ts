import { createHash } from 'node:crypto';
import type { ChargeOutcome, PaymentProvider, Price } from '../core/ports/payment-provider.js';

/** Prefixes of charge keys that determine the answer. A charge with any other key succeeds. */
const SIMULATED_DECLINE = 'decline';
const SIMULATED_LOST_ANSWER = 'unknown';

/** Prefix of every payment id of the simulator. A refund of `simulated-decline…` is refused, and so on. */
const SIMULATED = 'simulated-';

/**
 * Moves no money and keeps no state: the answer depends only on order and key, so a repeated charge is the same
 * payment, and a begun charge counts as made. Refuses to refund other payment ids, because they took real money.
 */
export function createPaymentSimulator(): PaymentProvider {
  const begun = async (orderId: string, price: Price, key: string): Promise<ChargeOutcome> => {
    if (key.startsWith(SIMULATED_DECLINE)) return { outcome: 'declined' };
    if (key.startsWith(SIMULATED_LOST_ANSWER)) return { outcome: 'unknown' };
    const id = createHash('sha256').update(`${orderId}/${key}`).digest('base64url');
    return { outcome: 'succeeded', payment: { ...price, paymentId: `${SIMULATED}${id}` } };
  };
  return {
    needsMethod: false,
    charge: begun,
    lookUp: begun,
    async refund(paymentId) {
      if (!paymentId.startsWith(SIMULATED)) return { outcome: 'refused', detail: 'not a simulated payment' };
      const word = paymentId.slice(SIMULATED.length);
      if (word.startsWith(SIMULATED_DECLINE)) return { outcome: 'refused', detail: 'simulated' };
      return { outcome: word.startsWith(SIMULATED_LOST_ANSWER) ? 'unknown' : 'refunded' };
    },
  };
}
