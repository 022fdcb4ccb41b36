import { InvalidArgumentError } from 'commander';

/** Parsers for command line options; each says what it takes when it refuses. */
export const parseWhole =
  (min: number, max: number) =>
  (text: string): number => {
    const value = Number(text);
    if (!/^-?\d+$/.test(text) || !Number.isSafeInteger(value) || value < min || value > max) {
      throw new InvalidArgumentError(`must be a whole number from ${min} to ${max}.`);
    }
    return value;
  };

/** ISO 8601 (`2026-11-27T10:00:00Z`), `now`, or a time from now (`+90s`, `+10m`, `-2h`, `-1d`). @returns Unix ms */
export function parseTime(text: string): number {
  if (text === 'now') return Date.now();
  const [, amount, unit] = /^([+-]\d{1,6})([smhd])$/.exec(text) ?? [];
  if (amount && unit) {
    const unitMs = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }[unit] as number;
    return Date.now() + Number(amount) * unitMs;
  }
  const parsed = Date.parse(text);
  if (Number.isNaN(parsed)) throw new InvalidArgumentError('must be a time such as 2026-11-27T10:00:00Z, now or +10m.');
  return parsed;
}
