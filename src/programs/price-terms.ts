import type { Config } from '../core/config/schema.js';
import { priceFaultOf } from '../payment/price-fault.js';
import type { PriceTerms } from '../sales/new-sale.js';

/** Returns the price rules of the shop, from its settings alone. */
export const priceTermsOf = ({ sale, payment }: Config<'sale' | 'payment'>): PriceTerms => ({
  currency: sale.currency,
  faultOf: priceFaultOf(payment),
});
