import { PROVIDER_CALL_MAX_MS, type PaymentProvider } from '../core/ports/payment-provider.js';
import type { Clock } from '../core/ports/clock.js';

/**
 * The provider, with each call bounded: whoever waits for it holds a lease, or a request of a buyer. A call that takes longer
 * is `unknown`, whatever it says then; the next one with the same key finds what came of it.
 */
export function answersInTime(provider: PaymentProvider, clock: Pick<Clock, 'sleep'>): PaymentProvider {
  const inTime = async <Answer>(call: Promise<Answer>): Promise<Answer | { readonly outcome: 'unknown' }> => {
    const answered = new AbortController();
    const late = clock.sleep(PROVIDER_CALL_MAX_MS, answered.signal).then(() => ({ outcome: 'unknown' }) as const);
    return Promise.race([call, late]).finally(() => answered.abort());
  };
  return {
    needsMethod: provider.needsMethod,
    charge: (...charge) => inTime(provider.charge(...charge)),
    lookUp: (...charge) => inTime(provider.lookUp(...charge)),
    refund: (paymentId, amountCents, key) => inTime(provider.refund(paymentId, amountCents, key)),
  };
}
