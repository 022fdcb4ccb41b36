import type { Clock } from '../core/ports/clock.js';
import type { JobLeases } from '../core/ports/job-leases.js';
import { recent } from '../core/recent.js';

/** Shorter than the least pause before a message comes again, so an old answer costs no message a second attempt. */
const KEPT_MS = 500;

/**
 * Whether MySQL takes writes, asked by a lease of no time: a small write that hinders nobody. A server that is read-only, or
 * has a full disk, answers reads, and each message would lose one attempt after the other. All who ask within half a second
 * share the answer: each write is flushed to the disk of MySQL, and consumers ask before each receive.
 * @param owner tells this keeper from others
 * @returns rejects while it takes none
 */
export function takesWrites(leases: Pick<JobLeases, 'hold'>, owner: string, clock: Clock): () => Promise<void> {
  return recent(async () => void (await leases.hold('consumers', owner, 0)), KEPT_MS, clock);
}
