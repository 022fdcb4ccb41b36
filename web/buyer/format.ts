import { currencyDigits, inMainUnit } from '../../src/core/currency.js';
import { clockParts } from './screen.js';

/** Formats numbers, prices and times in a language. */
export interface Format {
  /** @param amount in the smallest unit of the currency */
  readonly price: (amount: number) => string;
  readonly number: (value: number) => string;
  /** Day and time of day, in the time zone of the browser. */
  readonly when: (atMs: number) => string;
  /** `9:05`, or `1:09:05`. */
  readonly clock: (leftMs: number) => string;
  /** `10 minutes` for 10m, a duration of the API. */
  readonly span: (duration: string) => string;
  /** Text for a screen reader. */
  readonly spoken: (leftMs: number) => string;
}

export function formatOf(lang: string, currency: string): Format {
  const price = priceFormat(lang, currency);
  const whole = new Intl.NumberFormat(lang);
  const when = new Intl.DateTimeFormat(lang, {
    weekday: 'short',
    day: 'numeric',
    month: 'long',
    hour: '2-digit',
    minute: '2-digit',
  });
  const unit = (name: string): Intl.NumberFormat =>
    new Intl.NumberFormat(lang, { style: 'unit', unit: name, unitDisplay: 'long' });
  const units = [unit('day'), unit('hour'), unit('minute'), unit('second')] as const;
  return {
    price,
    number: (value) => whole.format(value),
    when: (atMs) => when.format(atMs),
    clock(leftMs) {
      const { days, hours, minutes, seconds } = clockParts(leftMs);
      const two = (value: number): string => String(value).padStart(2, '0');
      const allHours = days * 24 + hours;
      return allHours > 0 ? `${allHours}:${two(minutes)}:${two(seconds)}` : `${minutes}:${two(seconds)}`;
    },
    span: (duration) => units['dhms'.indexOf(duration.slice(-1))]?.format(parseInt(duration)) ?? '',
    spoken(leftMs) {
      const { days, hours, minutes, seconds } = clockParts(leftMs);
      const parts = [days, hours, minutes, seconds];
      const said = parts.flatMap((value, index) => (value > 0 ? [units[index]?.format(value) ?? ''] : []));
      return said.slice(0, 2).join(' ') || units[3].format(0);
    },
  };
}

/**
 * Formats prices. A currency that the browser does not know is shown as its three letters. Whole amounts are shown
 * without decimals.
 */
function priceFormat(lang: string, currency: string): Format['price'] {
  const ofDigits = (digits: number): Intl.NumberFormat => {
    const shown = { minimumFractionDigits: digits, maximumFractionDigits: digits };
    try {
      return new Intl.NumberFormat(lang, { style: 'currency', currency, ...shown });
    } catch {
      return new Intl.NumberFormat(lang, shown);
    }
  };
  const [whole, exact] = [ofDigits(0), ofDigits(currencyDigits(currency))];
  return (amount) => {
    const figure = inMainUnit(amount, currency);
    return (Number.isInteger(figure) ? whole : exact).format(figure);
  };
}
