const FIRST_MS = 500;
const MOST_MS = 10_000;

/**
 * How long to wait before the next try, ms: never less than the server asks for, longer with every try that failed, and for
 * everybody another time, so that those who were refused together do not come back together.
 * @param tries that have failed, from 1
 * @param retryAfterMs as the server says; null: it says nothing
 * @param random from 0 up to 1
 */
export function backOffMs(tries: number, retryAfterMs: number | null, random: number): number {
  const ownMs = Math.min(MOST_MS, FIRST_MS * 2 ** (tries - 1));
  const leastMs = Math.max(ownMs / 2, retryAfterMs ?? 0);
  return leastMs + random * Math.max(ownMs, leastMs / 2);
}
