import { pause } from '../core/after.js';
import type { Clock } from '../core/ports/clock.js';

/** The clock of this machine. */
export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  sleep: pause,
};
