import { Counter, Histogram, type Registry } from 'prom-client';
import { DURATION_BUCKETS } from '../core/histogram-buckets.js';
import { FORGERIES, type SignatureMetrics } from '../core/message-signatures.js';
import type { CheckBackAnswer } from '../core/ports/channels.js';
import { TOPICS } from '../core/topics.js';

export type ChannelMetrics = ReturnType<typeof createChannelMetrics>;

export function createChannelMetrics(registry: Registry) {
  const registers = [registry];
  const sends = new Histogram({
    name: 'seckill_half_send_seconds',
    help: 'Time to send a half message, by result.',
    labelNames: ['outcome'],
    buckets: DURATION_BUCKETS,
    registers,
  });
  const checks = new Counter({
    name: 'seckill_check_backs_total',
    help: 'Check-backs of the broker for an open half message, by answer.',
    labelNames: ['answer'],
    registers,
  });
  const failed = new Counter({
    name: 'seckill_half_end_failures_total',
    help: 'Commits and rollbacks that the broker did not confirm; a check-back follows.',
    labelNames: ['verb'],
    registers,
  });
  return {
    /** @param elapsedMs time from the call to its answer */
    halfSent: (outcome: 'stored' | 'unavailable' | 'outcome_unknown', elapsedMs: number): void =>
      sends.labels(outcome).observe(elapsedMs / 1000),
    checkedBack: (answer: CheckBackAnswer): void => checks.labels(answer).inc(),
    /** Counts a commit or rollback of a half message that the broker did not confirm. A check-back follows. */
    endFailed: (verb: 'commit' | 'rollback'): void => failed.labels(verb).inc(),
  };
}

/** Counts messages that none of our programs signed. */
export function createSignatureMetrics(registry: Registry): SignatureMetrics {
  const forged = new Counter({
    name: 'seckill_forged_messages_total',
    help: 'Messages without a valid signature, parked as dead letters. Alert on it.',
    labelNames: ['topic', 'reason'],
    registers: [registry],
  });
  const accepted = new Counter({
    name: 'seckill_unsigned_messages_total',
    help: 'Messages without a signature that were accepted, because MESSAGE_UNSIGNED is accept.',
    labelNames: ['topic'],
    registers: [registry],
  });
  // Creates every series at 0, because an alert on an increase would miss the first increase of a new series.
  for (const topic of Object.values(TOPICS)) for (const reason of FORGERIES) forged.labels(topic, reason).inc(0);
  return {
    forged: (topic, reason) => forged.labels(topic, reason).inc(),
    unsignedAccepted: (topic) => accepted.labels(topic).inc(),
  };
}
