import { amountText } from '../core/amount-text.js';
import { currencyDigits } from '../core/currency.js';
import type { Price } from '../core/ports/payment-provider.js';

// Stripe also counts amounts in the smallest unit of the currency, with some exceptions (docs.stripe.com/currencies).

/** Currencies that have a different number of digits at Stripe than in ISO 4217. */
const DIGITS: Readonly<Record<string, number>> = { MGA: 0, ISK: 2, UGX: 2 };

/** The smallest charges, as amounts of Stripe. */
const SMALLEST: Readonly<Record<string, number>> = {
  ...{
    AED: 200,
    AUD: 50,
    BGN: 100,
    BRL: 50,
    CAD: 50,
    CHF: 50,
    CZK: 1500,
    DKK: 250,
    EUR: 50,
    GBP: 30,
    HKD: 400,
    HUF: 17_500,
  },
  ...{
    INR: 50,
    JPY: 50,
    MXN: 1000,
    MYR: 200,
    NOK: 300,
    NZD: 50,
    PLN: 200,
    RON: 200,
    SEK: 300,
    SGD: 50,
    THB: 1000,
    USD: 50,
  },
};

/** Returns the factor by which our amounts are multiplied to get amounts of Stripe. */
const factorOf = (currency: string): number => {
  const digits = currencyDigits(currency);
  return 10 ** ((DIGITS[currency] ?? digits) - digits);
};

/** Returns the step of prices: each price must be a multiple of it, because Stripe ignores the last of three digits. */
const stepOf = (currency: string): number =>
  currencyDigits(currency) === 3 ? 10 : Math.max(1, 1 / factorOf(currency));

/** Null if Stripe cannot charge the price, because it is a fraction of the smallest coin. */
export const toStripeAmount = ({ amountCents, currency }: Price): number | null =>
  amountCents % stepOf(currency) === 0 ? Math.round(amountCents * factorOf(currency)) : null;

/** Converts to our smallest unit. Null if the amount is not a whole number of units, so that we did not ask for it. */
export function fromStripeAmount(amount: number, currency: string): number | null {
  const ours = amount / factorOf(currency);
  return Number.isInteger(ours) ? ours : null;
}

/** Returns why Stripe cannot charge a price, as the end of a sentence. Null if it can. A price of 0 is not charged. */
export function stripeFault(price: Price): string | null {
  const { amountCents, currency } = price;
  if (amountCents === 0) return null;
  const amount = toStripeAmount(price);
  if (amount === null)
    return `must be a multiple of ${stepOf(currency)}: Stripe charges no smaller part of ${currency}`;
  const least = (SMALLEST[currency] ?? 0) / factorOf(currency);
  return amountCents >= least
    ? null
    : `must be 0, or ${least} or more: Stripe charges ${amountText(least, currency)} or more`;
}
