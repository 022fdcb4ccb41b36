import type { Section } from '../core/config/schema.js';
import type { PriceFault } from '../core/ports/payment-provider.js';
import { stripeFault } from './stripe-amount.js';

/** What the configured provider cannot charge. Asks no server. */
export const priceFaultOf = ({ provider }: Pick<Section<'payment'>, 'provider'>): PriceFault =>
  provider === 'stripe' ? stripeFault : () => null;
