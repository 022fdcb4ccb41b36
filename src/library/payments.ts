import type { Section } from '../core/config/schema.js';
import type { Log } from '../core/ports/log.js';
import type { Payments } from '../core/ports/payment-provider.js';
import { answersInTime } from '../payment/answers-in-time.js';
import { openPayments } from '../payment/open-payments.js';
import { systemClock as clock } from '../process/system-clock.js';
import type { KeeperOptions } from './options.js';

/** Returns the app's provider with a time limit, or that of `PAYMENT_PROVIDER`, or null. @throws ConfigError */
export async function paymentsOf(
  { payments }: KeeperOptions,
  config: Section<'payment'>,
  log: Log,
): Promise<Payments | null> {
  if (payments === undefined) return openPayments(config, { clock, log });
  const { provider, webhook } = 'charge' in payments ? { provider: payments, webhook: null } : payments;
  return { provider: answersInTime(provider, { clock, log }), webhook };
}
