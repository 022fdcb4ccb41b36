import { currencyDigits, inMainUnit } from '../../../src/core/currency.js';

/** Units that a duration is split into, the largest first, ms. */
const UNITS = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1_000],
] as const;

const ISO_TIME = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g;

export type Format = ReturnType<typeof createFormat>;

/**
 * Formats numbers, money and times as people write them in a language.
 * @param locale BCP 47
 * @param timeZone default: that of the browser
 */
export function createFormat(locale: string, timeZone?: string) {
  const zone = timeZone === undefined ? {} : { timeZone };
  const whole = new Intl.NumberFormat(locale, { maximumFractionDigits: 0 });
  const tenths = new Intl.NumberFormat(locale, { maximumFractionDigits: 1 });
  const compact = new Intl.NumberFormat(locale, { notation: 'compact', maximumFractionDigits: 1 });
  const percents = new Intl.NumberFormat(locale, { style: 'percent', maximumFractionDigits: 1 });
  const clock = { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23', ...zone } as const;
  const times = new Intl.DateTimeFormat(locale, clock);
  const exactTimes = new Intl.DateTimeFormat(locale, { ...clock, fractionalSecondDigits: 3 });
  const dateTimes = new Intl.DateTimeFormat(locale, { ...clock, month: 'short', day: 'numeric' });
  const dateTimesOfYear = new Intl.DateTimeFormat(locale, {
    ...clock,
    year: 'numeric',
    month: 'short',
    day: 'numeric',
  });
  const days = new Intl.DateTimeFormat(locale, { weekday: 'long', month: 'long', day: 'numeric', ...zone });
  const yearIn = new Intl.DateTimeFormat('en', { year: 'numeric', ...zone });
  const dayKeys = new Intl.DateTimeFormat('en-CA', { year: 'numeric', month: '2-digit', day: '2-digit', ...zone });
  const relative = new Intl.RelativeTimeFormat(locale, { numeric: 'always', style: 'narrow' });
  const monies = new Map<string, Intl.NumberFormat>();
  const unit = (value: number, name: string, digits = 0): string =>
    new Intl.NumberFormat(locale, {
      style: 'unit',
      unit: name,
      unitDisplay: 'narrow',
      maximumFractionDigits: digits,
    }).format(value);

  /** `1.2 s`, `3 min 20 s`, `2 h 5 min`: two units at most, from the largest that is not zero. */
  const duration = (ms: number): string => {
    if (ms < 0) return `−${duration(-ms)}`;
    if (ms < 1_000) return unit(Math.round(ms), 'millisecond');
    if (ms < 10_000) return unit(Math.floor(ms / 100) / 10, 'second', 1);
    const index = UNITS.findIndex(([, unitMs]) => ms >= unitMs);
    const [name, unitMs] = UNITS[index] as (typeof UNITS)[number];
    const count = Math.floor(ms / unitMs);
    const next = UNITS[index + 1];
    const rest = next === undefined ? 0 : Math.floor((ms - count * unitMs) / next[1]);
    return [unit(count, name), ...(rest > 0 && next ? [unit(rest, next[0])] : [])].join(' ');
  };

  /** Includes the year unless it is the present year. */
  const dateTime = (atMs: number, nowMs: number = Date.now()): string =>
    (yearIn.format(atMs) === yearIn.format(nowMs) ? dateTimes : dateTimesOfYear).format(atMs);

  return {
    locale,
    number: (value: number): string => whole.format(value),
    tenths: (value: number): string => tenths.format(value),
    /** `12K`, for places without room for all digits. */
    compact: (value: number): string => compact.format(value),
    /** @param share 0 to 1 */
    percent: (share: number): string => percents.format(share),
    /**
     * @param amount in the smallest unit of the currency
     * @param currency ISO 4217; null: unknown, so only a figure with two digits is shown
     */
    money(amount: number, currency: string | null | undefined): string {
      const key = currency ?? '';
      let money = monies.get(key);
      if (money === undefined) {
        const digits = currencyDigits(key);
        money = new Intl.NumberFormat(locale, {
          ...(key !== '' && { style: 'currency', currency: key }),
          minimumFractionDigits: digits,
          maximumFractionDigits: digits,
        });
        monies.set(key, money);
      }
      return money.format(inMainUnit(amount, key));
    },
    duration,
    /** How long ago, or in how long: `in 5 min`. */
    relative(ms: number): string {
      const index = UNITS.findIndex(([, unitMs]) => Math.abs(ms) >= unitMs);
      const [name, unitMs] = UNITS[index < 0 ? UNITS.length - 1 : index] as (typeof UNITS)[number];
      return relative.format(Math.trunc(ms / unitMs), name);
    },
    time: (atMs: number): string => times.format(atMs),
    timeWithMs: (atMs: number): string => exactTimes.format(atMs),
    dateTime,
    day: (atMs: number): string => days.format(atMs),
    /** Equal for two times on the same day in the time zone. */
    dayKey: (atMs: number): string => dayKeys.format(atMs),
    /** Rewrites the times in a sentence of the API to the format of the console. */
    withTimes: (sentence: string): string => sentence.replace(ISO_TIME, (time) => dateTime(Date.parse(time))),
    /** Same format as logs and the command line. */
    utc: (atMs: number): string => `${new Date(atMs).toISOString().replace('T', ' ').replace('Z', '')} UTC`,
  };
}

/** Formats a time for a field of type `datetime-local`, in the time zone of the browser. */
export function localTimeField(atMs: number): string {
  const at = new Date(atMs - new Date(atMs).getTimezoneOffset() * 60_000);
  return at.toISOString().slice(0, 16);
}
