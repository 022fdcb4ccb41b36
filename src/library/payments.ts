import type { Section } from '../core/config/schema.js';
import type { Log } from '../core/ports/log.js';
import type { Payments } from '../core/ports/payment-provider.js';
import { answersInTime } from '../payment/answers-in-time.js';
import { openPayments } from '../payment/open-payments.js';
import { systemClock as clock } from '../process/system-clock.js';
import type { KeeperOptions } from './options.js';

/**
 * Returns the provider of the app, with a time limit for each call, or else the provider that `PAYMENT_PROVIDER` names.
 * Null if there is neither.
 * @throws ConfigError if the named provider refuses our key
 */
export async function paymentsOf(
  { payments }: KeeperOptions,
  config: Section<'payment'>,
  log: Log,
): Promise<Payments | null> {
  if (payments === undefined) return openPayments(config, { clock, log });
  const { provider, webhook } = 'charge' in payments ? { provider: payments, webhook: null } : payments;
  return { provider: answersInTime(provider, { clock, log }), webhook };
}
