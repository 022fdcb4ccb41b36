/** Pause after the first delivery of a message, ms. */
export const RETRY_FIRST_MS = 1_000;
/** Pauses after each delivery, as multiples of the first one. The broker gives up after 5 retries, about 2 minutes. */
const STEPS = [1, 5, 15, 30, 60] as const;
const JITTER = 0.2;

/** Returns the delay before a redelivery, ms. It grows with each attempt; jitter spreads the messages out. */
export function redeliveryDelayMs(attempt: number, firstMs: number = RETRY_FIRST_MS): number {
  const index = Math.min(Math.max(attempt, 1), STEPS.length) - 1;
  return jittered((STEPS[index] as number) * firstMs);
}

/** Adds ±20 % of jitter. */
export const jittered = (ms: number): number => Math.round(ms * (1 + JITTER * (2 * Math.random() - 1)));

/** Doubles from the first pause to the longest, ms. @param attempt from 1; lower numbers count as 1 */
export const doublingDelayMs = (attempt: number, firstMs: number, maxMs: number): number =>
  Math.min(firstMs * 2 ** (Math.max(attempt, 1) - 1), maxMs);
