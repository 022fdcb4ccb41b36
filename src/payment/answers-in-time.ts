import { PROVIDER_CALL_MAX_MS, type PaymentProvider } from '../core/ports/payment-provider.js';
import type { Clock } from '../core/ports/clock.js';
import type { Log } from '../core/ports/log.js';

const UNKNOWN = { outcome: 'unknown' } as const;

/**
 * Limits the time of each call, because its caller holds a lease, or a buyer waits. A late, throwing or rejecting call
 * is `unknown`, because it may have moved money. The next call with the same key finds the result.
 */
export function answersInTime(
  provider: PaymentProvider,
  { clock, log }: { readonly clock: Clock; readonly log: Log },
): PaymentProvider {
  const inTime = async <Answer>(call: () => Promise<Answer>): Promise<Answer | typeof UNKNOWN> => {
    const answered = new AbortController();
    const late = clock.sleep(PROVIDER_CALL_MAX_MS, answered.signal).then(() => UNKNOWN);
    try {
      return await Promise.race([call(), late]);
    } catch (err) {
      log.error({ err }, 'a call of the payment provider threw an error; its outcome is unknown');
      return UNKNOWN;
    } finally {
      answered.abort();
    }
  };
  return {
    needsMethod: provider.needsMethod,
    ...(provider.priceFault && { priceFault: (price) => provider.priceFault?.(price) ?? null }),
    charge: (...charge) => inTime(() => provider.charge(...charge)),
    lookUp: (...charge) => inTime(() => provider.lookUp(...charge)),
    refund: (...refund) => inTime(() => provider.refund(...refund)),
  };
}
