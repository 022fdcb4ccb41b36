import type { Section } from '../core/config/schema.js';
import { createPaymentSimulator } from '../payment/simulator.js';
import type { Log } from '../core/ports/log.js';
import type { PaymentProvider } from '../core/ports/payment-provider.js';

/** Whoever moves the money here; null: nobody. */
export function paymentProviderOf({ provider }: Section<'payment'>, log: Log): PaymentProvider | null {
  if (provider === 'none') return null;
  log.warn({}, 'payments are simulated: no money moves');
  return createPaymentSimulator();
}
