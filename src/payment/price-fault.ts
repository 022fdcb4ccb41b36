import type { Section } from '../core/config/schema.js';
import type { PriceFault } from '../core/ports/payment-provider.js';
import { stripeFault } from './stripe-amount.js';

/** Returns a function that says why the configured provider cannot charge a price. It calls no server. */
export const priceFaultOf = ({ provider }: Pick<Section<'payment'>, 'provider'>): PriceFault =>
  provider === 'stripe' ? stripeFault : () => null;
