import type { BreakerRules } from './breaker-rules.js';

/**
 * How long it stays open before it tries again.
 * @param failedTrials in a row; the wait doubles with each, up to the cap
 * @param random 0 to 1; makes the wait shorter, so the cap holds
 */
export function probeWaitMs(failedTrials: number, random: number, { firstMs, capMs, jitter }: BreakerRules['probe']) {
  return Math.min(capMs, firstMs * 2 ** failedTrials) * (1 - jitter * random);
}
