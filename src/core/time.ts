import { z } from 'zod';
import { readDuration } from './duration.js';
import { must } from './field-errors.js';

/** DATETIME and ISO 8601 allow more years, but a time outside this range is a typing error. */
const EARLIEST_MS = Date.UTC(2000, 0);
const LATEST_MS = Date.UTC(2100, 0);
const isSane = (atMs: number): boolean => atMs >= EARLIEST_MS && atMs < LATEST_MS;

/** ISO 8601 with a zone, on a day that exists. Never use `Date.parse` alone: it reads `05.12.2026` as 12 May. */
export const isoTime = z.iso
  .datetime({ offset: true, abort: true, error: must('a time such as 2030-01-31T20:00:00Z') })
  .refine((text) => isSane(Date.parse(text)), 'must be in the years 2000 to 2099');

/** Reads `isoTime`, `now`, or a relative time: `+90s`, `+10m`, `-2h`, `-1d`. @returns Unix ms, or null */
export function readTime(text: string, nowMs: number): number | null {
  if (text === 'now') return nowMs;
  const fromNowMs = /^[+-]/.test(text) ? readDuration(text.slice(1)) : null;
  if (fromNowMs !== null) {
    const atMs = nowMs + (text.startsWith('-') ? -fromNowMs : fromNowMs);
    return isSane(atMs) ? atMs : null;
  }
  return isoTime.safeParse(text).success ? Date.parse(text) : null;
}

/** Names of the two ends of a time span in queries, filters and options. */
const SPANS = [
  ['from', 'to'],
  ['since', 'until'],
  ['opensFrom', 'opensTo'],
  ['paidFrom', 'paidTo'],
] as const;

/** Returns the names of the ends of a span that ends before it begins, or null. @param times Unix ms */
export function spanReversed(times: Readonly<Record<string, unknown>>): { from: string; to: string } | null {
  for (const [from, to] of SPANS) {
    const [fromMs, toMs] = [times[from], times[to]];
    if (typeof fromMs === 'number' && typeof toMs === 'number' && toMs < fromMs) return { from, to };
  }
  return null;
}
