import type { Clock } from '../core/ports/clock.js';
import type { JobLeases } from '../core/ports/job-leases.js';
import { recent } from '../core/recent.js';

/** Shorter than the shortest redelivery pause: an old answer must not cost a message a second attempt. */
const KEPT_MS = 500;

/**
 * Checks whether MySQL takes writes, with a lease of zero duration: a small write that blocks no other process. A
 * server that is read-only or has a full disk still answers reads, and every message would lose an attempt. Callers
 * share the answer for half a second, because MySQL flushes each write to disk.
 * @param owner distinguishes this keeper from others
 * @returns a function that rejects while MySQL takes no writes
 */
export function takesWrites(leases: JobLeases, owner: string, clock: Clock): () => Promise<void> {
  return recent(async () => void (await leases.hold('consumers', owner, 0)), KEPT_MS, clock);
}
