import type { Price } from '../core/ports/payment-provider.js';

// Our amounts are hundredths in every currency. Those of Stripe are the smallest unit of the currency, with exceptions
// (docs.stripe.com/currencies).

/** Without a smaller coin: an amount of Stripe is whole units. */
const ZERO_DECIMAL = [
  ...['BIF', 'CLP', 'DJF', 'GNF', 'JPY', 'KMF', 'KRW', 'MGA'],
  ...['PYG', 'RWF', 'VND', 'VUV', 'XAF', 'XOF', 'XPF'],
];
/** Without a smaller coin as well, but Stripe counts hundredths, which must be whole units. */
const WHOLE_HUNDREDTHS = ['ISK', 'UGX'];
/** Thousandths. */
const THREE_DECIMAL = ['BHD', 'JOD', 'KWD', 'OMR', 'TND'];

/** What Stripe is asked for; null: the currency has no coin as small as that. */
export function toStripeAmount({ amountCents, currency }: Price): number | null {
  const isWhole = amountCents % 100 === 0;
  if (ZERO_DECIMAL.includes(currency)) return isWhole ? amountCents / 100 : null;
  if (WHOLE_HUNDREDTHS.includes(currency) && !isWhole) return null;
  return THREE_DECIMAL.includes(currency) ? amountCents * 10 : amountCents;
}

/** The amount of Stripe in hundredths; null: no whole number of them, so it is none that we asked for. */
export function fromStripeAmount(amount: number, currency: string): number | null {
  if (ZERO_DECIMAL.includes(currency)) return amount * 100;
  if (THREE_DECIMAL.includes(currency)) return amount % 10 === 0 ? amount / 10 : null;
  return amount;
}
