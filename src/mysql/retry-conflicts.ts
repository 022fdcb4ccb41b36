import type { Clock } from '../core/ports/clock.js';
import { MysqlError, type MysqlErrorKind } from './errors.js';

/** A deadlock shows at once. A lock wait has already cost `lockWaitSeconds`. */
const TRIES_MAX: Partial<Record<MysqlErrorKind, number>> = { deadlock: 8, lock_wait: 2 };
/** The n-th pause is random and at most n times this long, so that two rivals do not collide again. */
const PAUSE_MS = 20;

/** Repeats a transaction or statement that lost its locks. @param run from START to COMMIT. @throws the last error */
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
