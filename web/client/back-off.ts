const FIRST_MS = 500;
const MOST_MS = 10_000;

/**
 * Returns the wait before the next attempt, ms. It is never shorter than the server asks for, grows with every failed
 * attempt, and is random, so that clients that were refused together do not return together.
 * @param tries failed attempts, from 1
 * @param retryAfterMs requested by the server; null if the server names no delay
 * @param random from 0 up to 1
 */
export function backOffMs(tries: number, retryAfterMs: number | null, random: number): number {
  const ownMs = Math.min(MOST_MS, FIRST_MS * 2 ** (tries - 1));
  const leastMs = Math.max(ownMs / 2, retryAfterMs ?? 0);
  return leastMs + random * Math.max(ownMs, leastMs / 2);
}
