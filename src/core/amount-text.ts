import { currencyDigits, inMainUnit } from './currency.js';

const KNOWN = new Set(Intl.supportedValuesOf('currency'));

/** @param currency three letters, unchecked */
export const isCurrency = (currency: string): boolean => KNOWN.has(currency);

/** Formats an amount: `1,999 JPY`, `19.99 EUR`. @param amount in the smallest unit of the currency */
export function amountText(amount: number, currency: string): string {
  const digits = currencyDigits(currency);
  const figure = inMainUnit(amount, currency).toLocaleString('en', {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
  return `${figure} ${currency}`;
}
