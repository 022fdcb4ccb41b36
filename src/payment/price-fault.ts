import type { Section } from '../core/config/schema.js';
import type { PriceFault } from '../core/ports/payment-provider.js';
import { stripeFault } from './stripe-amount.js';

/** Says why the configured provider cannot charge a price. Asks no server. */
export const priceFaultOf = ({ provider }: Pick<Section<'payment'>, 'provider'>): PriceFault =>
  provider === 'stripe' ? stripeFault : () => null;
