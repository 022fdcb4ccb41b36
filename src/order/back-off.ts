/** After the n-th delivery of a message, ms. The broker gives up after 5 retries, so about 2 minutes of tries. */
const DELAYS_MS = [1_000, 5_000, 15_000, 30_000, 60_000] as const;
const JITTER = 0.2;

/** When to ask for a message again: the wait grows with its attempts, with jitter so that a crowd spreads out. */
export function retryDelayMs(attempt: number): number {
  const index = Math.min(Math.max(attempt, 1), DELAYS_MS.length) - 1;
  return jittered(DELAYS_MS[index] as number);
}

/** ±20 %. */
export const jittered = (ms: number): number => Math.round(ms * (1 + JITTER * (2 * Math.random() - 1)));
