import { amountText } from '../core/amount-text.js';
import { currencyDigits } from '../core/currency.js';
import type { Price } from '../core/ports/payment-provider.js';

// Amounts of Stripe are the smallest unit of the currency too, with exceptions (docs.stripe.com/currencies).

/** ISO 4217 has digits for it, Stripe has none; and the other way round. */
const DIGITS: Readonly<Record<string, number>> = { MGA: 0, ISK: 2, UGX: 2 };

/** The smallest charges, in amounts of Stripe. */
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

/** By how much amounts of Stripe are larger than ours. */
const factorOf = (currency: string): number => {
  const digits = currencyDigits(currency);
  return 10 ** ((DIGITS[currency] ?? digits) - digits);
};

/** What a price must be a multiple of: Stripe leaves out the last of three digits. */
const stepOf = (currency: string): number =>
  currencyDigits(currency) === 3 ? 10 : Math.max(1, 1 / factorOf(currency));

/** What Stripe is asked for; null: it cannot charge a part of the smallest coin. */
export const toStripeAmount = ({ amountCents, currency }: Price): number | null =>
  amountCents % stepOf(currency) === 0 ? Math.round(amountCents * factorOf(currency)) : null;

/** Converts Stripe's amount to our smallest unit. Null if it is no whole number of units, so that we cannot have asked for it. */
export function fromStripeAmount(amount: number, currency: string): number | null {
  const ours = amount / factorOf(currency);
  return Number.isInteger(ours) ? ours : null;
}

/** Why Stripe cannot charge a price, as the end of a sentence; null: it can. A price of 0 is not charged. */
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
