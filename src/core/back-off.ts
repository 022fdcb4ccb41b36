/** After the first delivery of a message, ms. */
export const RETRY_FIRST_MS = 1_000;
/** After the n-th delivery, in first pauses. The broker gives up after 5 retries, so about 2 minutes of tries. */
const STEPS = [1, 5, 15, 30, 60] as const;
const JITTER = 0.2;

/** When to deliver a message again: the wait grows with its attempts, with jitter so that many messages spread out. */
export function redeliveryDelayMs(attempt: number, firstMs: number = RETRY_FIRST_MS): number {
  const index = Math.min(Math.max(attempt, 1), STEPS.length) - 1;
  return jittered((STEPS[index] as number) * firstMs);
}

/** ±20 %. */
export const jittered = (ms: number): number => Math.round(ms * (1 + JITTER * (2 * Math.random() - 1)));

/** The first pause, then twice as long each time, up to the longest, ms. @param attempt counted from 1; less counts as 1 */
export const doublingDelayMs = (attempt: number, firstMs: number, maxMs: number): number =>
  Math.min(firstMs * 2 ** (Math.max(attempt, 1) - 1), maxMs);
