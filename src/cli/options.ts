import { userInfo } from 'node:os';
import { InvalidArgumentError } from 'commander';
import { isId, isSaleId } from '../core/ids.js';

// Parsers of options and arguments; each says what it takes when it refuses.

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
  const atMs = readTime(text);
  if (atMs === null) throw new InvalidArgumentError('must be a time such as 2026-11-27T10:00:00Z, now, +10m or -2h.');
  return atMs;
}

const UNITS_MS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Null for what is no time. */
export function readTime(text: string): number | null {
  if (text === 'now') return Date.now();
  const [, amount, unit = ''] = /^([+-]\d{1,6})([smhd])$/.exec(text) ?? [];
  const atMs = amount === undefined ? Date.parse(text) : Date.now() + Number(amount) * (UNITS_MS[unit] ?? NaN);
  return Number.isNaN(atMs) ? null : atMs;
}

export function parseSaleId(text: string): string {
  if (!isSaleId(text)) throw new InvalidArgumentError('must be the number of a sale.');
  return text;
}

export function parseId(text: string): string {
  if (!isId(text)) throw new InvalidArgumentError('must be an id: letters, digits, _ and -, up to 64.');
  return text;
}

/** The number of a row that another command shows. */
export const parseRowNumber =
  (shownBy: string) =>
  (text: string): string => {
    if (!/^[1-9][0-9]{0,17}$/.test(text)) throw new InvalidArgumentError(`must be a number that \`${shownBy}\` shows.`);
    return text;
  };

/** Who is at the keyboard, for the audit log. */
export function operatorName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`; // a container whose user has no name
  }
}
