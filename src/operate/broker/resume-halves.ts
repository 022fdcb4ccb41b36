import type { DiscardedHalf } from '../../contract/broker.js';
import type { AuditLog } from '../../core/ports/audit-log.js';
import { TOPICS } from '../../core/topics.js';
import type { MessageInspection } from './rocketmq-inspection.js';

/** A broker keeps messages for this long by default. It gives up older half messages at once. */
const RESUMED_MAX_AGE_MS = 72 * 3_600_000;
const SUBJECT_MAX = 128;

/** Selects the half messages of purchases that the brokers have given up and that have not been resumed before. */
export function resumableOf(found: readonly DiscardedHalf[]): {
  readonly halves: readonly DiscardedHalf[];
  /** Number of given-up messages that are too old, because the broker would give them up again at once. */
  readonly tooOld: number;
} {
  const ours = found.filter(({ topic, resumedAtMs }) => topic === TOPICS.purchase && resumedAtMs === null);
  const halves = ours.filter(({ ageMs }) => ageMs < RESUMED_MAX_AGE_MS);
  return { halves, tooOld: ours.length - halves.length };
}

/** Writes the audit log before it calls the broker. @throws OperationalError mysql (nothing was done), rocketmq */
export async function resumeHalf(
  half: DiscardedHalf,
  actor: string,
  { inspection, audit }: { readonly inspection: MessageInspection; readonly audit: AuditLog },
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
