import type { Clock } from '../core/ports/clock.js';
import type { JobLeases } from '../core/ports/job-leases.js';
import { recent } from '../core/recent.js';

/**
 * Shorter than the shortest pause before a redelivery, so that an old answer cannot cost a message a second attempt.
 */
const KEPT_MS = 500;

/**
 * Checks whether MySQL takes writes, by means of a lease of zero duration: a small write that blocks no other process.
 * A server that is read-only or has a full disk still answers reads, and one message after the other would lose an
 * attempt. All callers within half a second share the answer, because MySQL flushes each write to disk, and consumers
 * ask before each receive.
 * @param owner distinguishes this keeper from others
 * @returns a function that rejects while MySQL takes no writes
 */
export function takesWrites(leases: JobLeases, owner: string, clock: Clock): () => Promise<void> {
  return recent(async () => void (await leases.hold('consumers', owner, 0)), KEPT_MS, clock);
}
