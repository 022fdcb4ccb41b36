/** Longest interval between two polls, ms. */
export const INTERVAL_MAX_MS = 60_000;
/** Added per buyer ahead. With it, 500,000 waiting buyers poll less than 30,000 times a second. */
const PER_PLACE_MS = 0.15;
/** Added per waiting buyer before a draw. No buyer has a place yet, so all have the same interval. */
const PER_WAITING_MS = 0.04;

/** Returns when a waiting buyer should poll again, ms. @param position from 1; null before the draw */
export function pollInterval(position: number | null, waiting: number, shortestMs: number): number {
  const grownMs = position === null ? waiting * PER_WAITING_MS : shortestMs + position * PER_PLACE_MS;
  return Math.round(Math.max(shortestMs, Math.min(INTERVAL_MAX_MS, grownMs)));
}
