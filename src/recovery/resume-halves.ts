import type { AuditLog } from '../core/ports/audit-log.js';
import type { DiscardedHalf, MessageInspection } from '../core/ports/message-inspection.js';
import { TOPICS } from '../core/topics.js';

/** A broker gives up at once what is older than it keeps messages, by default. */
const RESUMED_MAX_AGE_MS = 72 * 3_600_000;
const SUBJECT_MAX = 128;

/** Half messages of purchases among those that the brokers gave up; each is resumed once. */
export function resumableOf(found: readonly DiscardedHalf[]): {
  readonly halves: readonly DiscardedHalf[];
  /** So many more were given up, and would be at once again. */
  readonly tooOld: number;
} {
  const ours = found.filter(({ topic, resumedAtMs }) => topic === TOPICS.purchase && resumedAtMs === null);
  const halves = ours.filter(({ ageMs }) => ageMs < RESUMED_MAX_AGE_MS);
  return { halves, tooOld: ours.length - halves.length };
}

/**
 * Has the broker ask again about a half message that it gave up. It is in the audit log before the broker is asked.
 * @throws OperationalError mysql, and nothing was done; rocketmq
 */
export async function resumeHalf(
  half: DiscardedHalf,
  actor: string,
  {
    inspection,
    audit,
  }: { readonly inspection: Pick<MessageInspection, 'resume'>; readonly audit: Pick<AuditLog, 'append'> },
): Promise<void> {
  const { key, topic, messageId, discardedAtMs } = half;
  await audit.append({
    actor,
    action: 'half_message.resumed',
    subject: `half_message:${key || messageId}`.slice(0, SUBJECT_MAX),
    before: { topic, messageId, discardedAt: new Date(discardedAtMs).toISOString() },
    after: { open: true },
  });
  await inspection.resume(half);
}
