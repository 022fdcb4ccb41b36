import type { Section } from '../core/config/schema.js';
import type { Clock } from '../core/ports/clock.js';
import type { Log } from '../core/ports/log.js';
import type { Payments } from '../core/ports/payment-provider.js';
import { answersInTime } from './answers-in-time.js';
import { createPaymentSimulator } from './simulator.js';

type PaymentConfig = Section<'payment'>;

/** Loaded when chosen. To add: a file, a row here, a word in `core/config/sections/orders.ts` (docs/payments.md). */
const PROVIDERS: Record<
  Exclude<PaymentConfig['provider'], 'none'>,
  (config: PaymentConfig, log: Log) => Promise<Payments>
> = {
  async simulator(_config, log) {
    log.info({}, 'payments are simulated: no money moves');
    return { provider: createPaymentSimulator(), webhook: null };
  },
  http: async (config, log) => (await import('./http-provider.js')).openHttpProvider(config, log),
  stripe: async (config, log) => (await import('./stripe.js')).openStripe(config, log),
};

/** Null if no provider is configured: refunds then wait for an operator. @throws ConfigError if it refuses our key */
export async function openPayments(
  config: PaymentConfig,
  { clock, log }: { readonly clock: Clock; readonly log: Log },
): Promise<Payments | null> {
  if (config.provider === 'none') return null;
  const { provider, webhook } = await PROVIDERS[config.provider](config, log);
  return { provider: answersInTime(provider, { clock, log }), webhook };
}
