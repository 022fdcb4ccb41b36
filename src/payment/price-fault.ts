import type { Section } from '../core/config/schema.js';
import type { PaymentProvider, PriceFault } from '../core/ports/payment-provider.js';
import { stripeFault } from './stripe-amount.js';

/** Says why the provider cannot charge a price. Asks no server. @param opened may have limits of its own */
export const priceFaultOf = (
  { provider }: Pick<Section<'payment'>, 'provider'>,
  opened: PaymentProvider | null = null,
): PriceFault => opened?.priceFault ?? (provider === 'stripe' ? stripeFault : () => null);
