import type { Clock } from '../../core/ports/clock.js';
import type { ReplayOptions } from './replay-answer.js';

/** A worker needs milliseconds; a busy one is asked less and less often. */
const LOOK_FIRST_MS = 25;
const LOOK_MAX_MS = 500;

/** Looks again and again until it is done, the wait is over or the signal aborts. @returns what the last look saw */
export async function followUntil<T>(
  look: () => Promise<T>,
  isDone: (seen: T) => boolean,
  clock: Clock,
  { waitMs, signal }: Pick<ReplayOptions, 'waitMs' | 'signal'>,
): Promise<T> {
  const deadlineMs = clock.nowMs() + waitMs;
  let pauseMs = LOOK_FIRST_MS;
  for (;;) {
    const seen = await look();
    if (isDone(seen) || clock.nowMs() >= deadlineMs || signal?.aborted === true) return seen;
    await clock.sleep(Math.min(pauseMs, deadlineMs - clock.nowMs()), signal);
    pauseMs = Math.min(pauseMs * 2, LOOK_MAX_MS);
  }
}
