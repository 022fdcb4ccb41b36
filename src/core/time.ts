import { z } from 'zod';
import { readDuration } from './duration.js';
import { must } from './field-errors.js';

/** DATETIME and ISO 8601 know far more years; a time outside of these is a slip of the keyboard. */
const EARLIEST_MS = Date.UTC(2000, 0);
const LATEST_MS = Date.UTC(2100, 0);
const isSane = (atMs: number): boolean => atMs >= EARLIEST_MS && atMs < LATEST_MS;

/** ISO 8601 with a zone, of a day that exists. Never `Date.parse` alone: it takes `05.12.2026` for the 12th of May. */
export const isoTime = z.iso
  .datetime({ offset: true, abort: true, error: must('a time such as 2030-01-31T20:00:00Z') })
  .refine((text) => isSane(Date.parse(text)), 'must be in the years 2000 to 2099');

/** The same, `now`, or a time from now: `+90s`, `+10m`, `-2h`, `-1d`. @returns Unix ms; null for anything else */
export function readTime(text: string, nowMs: number): number | null {
  if (text === 'now') return nowMs;
  const fromNowMs = /^[+-]/.test(text) ? readDuration(text.slice(1)) : null;
  if (fromNowMs !== null) {
    const atMs = nowMs + (text.startsWith('-') ? -fromNowMs : fromNowMs);
    return isSane(atMs) ? atMs : null;
  }
  return isoTime.safeParse(text).success ? Date.parse(text) : null;
}

/** The two ends of a time, as queries, filters and options call them. */
const SPANS = [
  ['from', 'to'],
  ['since', 'until'],
  ['opensFrom', 'opensTo'],
] as const;

/** Finds a span that ends before it begins. @param times Unix ms. @returns the names of its two ends, or null */
export function spanReversed(times: Readonly<Record<string, unknown>>): { from: string; to: string } | null {
  for (const [from, to] of SPANS) {
    const [fromMs, toMs] = [times[from], times[to]];
    if (typeof fromMs === 'number' && typeof toMs === 'number' && toMs < fromMs) return { from, to };
  }
  return null;
}
