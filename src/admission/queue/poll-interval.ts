/** Longest interval between two questions of a waiting buyer, ms. */
export const INTERVAL_MAX_MS = 60_000;
/** Added per buyer ahead. 500,000 waiting buyers then ask less than 30,000 times a second. */
const PER_PLACE_MS = 0.15;
/** Before a draw no buyer has a place, so all share this interval per waiting buyer. */
const PER_WAITING_MS = 0.04;

/**
 * Returns when a waiting buyer should ask again.
 * @param position the place, from 1. Null before the draw
 */
export function pollInterval(position: number | null, waiting: number, shortestMs: number): number {
  const grownMs = position === null ? waiting * PER_WAITING_MS : shortestMs + position * PER_PLACE_MS;
  return Math.round(Math.max(shortestMs, Math.min(INTERVAL_MAX_MS, grownMs)));
}
