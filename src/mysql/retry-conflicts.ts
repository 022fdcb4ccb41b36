import type { Clock } from '../core/ports/clock.js';
import { MysqlError, type MysqlErrorKind } from './errors.js';

/** How often it is tried. The victim of a deadlock knows at once; a lock wait has cost `lockWaitSeconds`. */
const TRIES_MAX: Partial<Record<MysqlErrorKind, number>> = { deadlock: 8, lock_wait: 2 };
/** The n-th pause is up to n times as long, at random, so that two rivals do not meet again. */
const PAUSE_MS = 20;

/**
 * Runs a transaction, or a statement by itself, again that lost its locks to another one. Nothing of a lost try is left.
 * @param run the whole of it, from START to COMMIT
 * @throws what the last try threw
 */
export async function retryConflicts<T>(clock: Clock, run: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await run();
    } catch (error) {
      const triesMax = error instanceof MysqlError ? (TRIES_MAX[error.kind] ?? 1) : 1;
      if (attempt >= triesMax) throw error;
      await clock.sleep(Math.ceil(Math.random() * PAUSE_MS * attempt));
    }
  }
}
