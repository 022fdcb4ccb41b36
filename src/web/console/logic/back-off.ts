const FIRST_MS = 1_000;
const MOST_MS = 30_000;

/**
 * How long to wait before the next try, ms: twice as long after each failure in a row, up to half a minute, and spread, so
 * that consoles which lost the same api do not come back together.
 * @param failures in a row, from 1
 * @param random 0 to 1
 */
export function backOffMs(failures: number, random: number): number {
  const ms = Math.min(MOST_MS, FIRST_MS * 2 ** Math.min(failures - 1, 10));
  return Math.round(ms * (0.75 + random / 4));
}
