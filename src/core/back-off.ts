/** Pause after the first delivery of a message, ms. */
export const RETRY_FIRST_MS = 1_000;
/**
 * Pause after the n-th delivery, as a multiple of the first pause. The broker gives up after 5 retries, about 2
 * minutes.
 */
const STEPS = [1, 5, 15, 30, 60] as const;
const JITTER = 0.2;

/**
 * Returns the delay before a message is delivered again. The delay grows with each attempt, and jitter spreads the
 * messages out.
 */
export function redeliveryDelayMs(attempt: number, firstMs: number = RETRY_FIRST_MS): number {
  const index = Math.min(Math.max(attempt, 1), STEPS.length) - 1;
  return jittered((STEPS[index] as number) * firstMs);
}

/** Adds ±20 % of jitter. */
export const jittered = (ms: number): number => Math.round(ms * (1 + JITTER * (2 * Math.random() - 1)));

/**
 * Doubles the first pause with each attempt, up to the longest pause, ms.
 * @param attempt counted from 1; a lower number counts as 1
 */
export const doublingDelayMs = (attempt: number, firstMs: number, maxMs: number): number =>
  Math.min(firstMs * 2 ** (Math.max(attempt, 1) - 1), maxMs);
