// Amounts are whole numbers of the smallest unit of ISO 4217: cents for EUR, yen for JPY, fils for KWD.

/** `Intl` shows HUF, IDR and others without digits, although their amounts have two. */
const NO_DIGITS = 'BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF'.split(' ');
const THREE_DIGITS = 'BHD IQD JOD KWD LYD OMR TND'.split(' ');

/** Returns the digits after the decimal point. @param currency three letters of ISO 4217 */
export function currencyDigits(currency: string): 0 | 2 | 3 {
  if (NO_DIGITS.includes(currency)) return 0;
  return THREE_DIGITS.includes(currency) ? 3 : 2;
}

/** Converts an amount to the main unit: 19.99 for 1999 in EUR, 1999 for 1999 in JPY. */
export const inMainUnit = (amount: number, currency: string): number => amount / 10 ** currencyDigits(currency);

/** The result has a fraction if the text has more digits than the currency. */
export function inSmallestUnit(figure: number, currency: string): number {
  const amount = figure * 10 ** currencyDigits(currency);
  const whole = Math.round(amount);
  return Math.abs(amount - whole) < 1e-3 ? whole : amount; // 19.99 * 100 is 1998.9999999999998
}
