import { decodeBatch } from '../core/batch.js';
import { assertNever } from '../core/errors.js';
import type { SignedMessages } from '../core/message-signatures.js';
import type { Log } from '../core/ports/log.js';
import { NO_TRACING, type Tracing } from '../core/ports/tracing.js';
import type { CheckBack } from '../core/ports/channels.js';
import type { Reservations } from '../core/ports/stock-store.js';
import { inSpan } from '../core/spans.js';
import { GROUPS, TOPICS } from '../core/topics.js';

/** Topic and group of a parked forgery. Committed, a forged half message would have reached this group. */
const ORIGIN = { group: GROUPS.writer, topic: TOPICS.purchase };

/**
 * Answers the broker's check-back of a half message from the marker of its batch. When in doubt the answer is
 * `no_answer`, never a rollback, and the broker asks again (protocol rule 2). An unsigned message is parked and rolled
 * back without reading the marker, because it may name a batch whose units are deducted.
 */
export function createCheckBack(
  resolve: Reservations['resolve'],
  messages: SignedMessages,
  log: Log,
  tracing: Tracing = NO_TRACING,
): CheckBack {
  return async (half) => {
    if (!(await messages.admits(half, ORIGIN))) return 'rollback';
    const decoded = decodeBatch(half.body);
    if (decoded.outcome !== 'decoded') {
      // Another version of this program wrote the message. The broker asks again and reaches a process of that version.
      log.error(
        { reason: decoded.outcome, detail: decoded.detail },
        'check-back for a half message that cannot be read',
      );
      return 'no_answer';
    }
    const { batchId, traceparent } = decoded.batch;
    const span = tracing.startWork(traceparent, {
      name: 'check back',
      kind: 'server',
      fields: { 'seckill.batch': batchId },
    });
    const verdict = await inSpan(span, async () => {
      const resolved = await resolve(decoded.batch);
      span?.set({ 'seckill.verdict': resolved });
      return resolved;
    });
    switch (verdict) {
      case 'deducted':
      case 'claimed':
      case 'outlived': // the marker may be lost, so a buyer may have got a 202: the worker reacquires the units
      case 'unreplicated':
        return 'commit';
      case 'aborted':
        return 'rollback';
      case 'no_answer':
      case 'outcome_unknown':
        return 'no_answer';
      default:
        return assertNever(verdict);
    }
  };
}
