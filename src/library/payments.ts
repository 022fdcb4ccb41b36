import type { Section } from '../core/config/schema.js';
import type { Log } from '../core/ports/log.js';
import type { Payments } from '../core/ports/payment-provider.js';
import { answersInTime } from '../payment/answers-in-time.js';
import { openPayments } from '../payment/open-payments.js';
import { systemClock as clock } from '../programs/system-clock.js';
import type { KeeperOptions } from './options.js';

/**
 * The provider of the app, with each call bounded, or the one that `PAYMENT_PROVIDER` names; null: there is none.
 * @throws ConfigError where that one refuses our key
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
