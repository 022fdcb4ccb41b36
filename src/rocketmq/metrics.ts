import type { Registry } from 'prom-client';
import { metricMakers } from '../core/metric-makers.js';
import { FORGERIES, type SignatureMetrics } from '../core/message-signatures.js';
import type { CheckBackAnswer } from '../core/ports/channels.js';
import { TOPICS } from '../core/topics.js';

export type ChannelMetrics = ReturnType<typeof createChannelMetrics>;

export function createChannelMetrics(registry: Registry) {
  const { counter, histogram } = metricMakers(registry);
  const sends = histogram('seckill_half_send_seconds', 'Time to send a half message, by result.', {
    labelNames: ['outcome'],
  });
  const checks = counter(
    'seckill_check_backs_total',
    'Check-backs of the broker for an open half message, by answer.',
    ['answer'],
  );
  const failed = counter(
    'seckill_half_end_failures_total',
    'Commits and rollbacks that the broker did not confirm; a check-back follows.',
    ['verb'],
  );
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
  const { counter } = metricMakers(registry);
  const forged = counter(
    'seckill_forged_messages_total',
    'Messages without a valid signature, parked as dead letters. Alert on it.',
    ['topic', 'reason'],
  );
  const accepted = counter(
    'seckill_unsigned_messages_total',
    'Messages without a signature that were accepted, because MESSAGE_UNSIGNED is accept.',
    ['topic'],
  );
  // Creates every series at 0: an alert on an increase would miss the first increase of a new series.
  for (const topic of Object.values(TOPICS)) for (const reason of FORGERIES) forged.labels(topic, reason).inc(0);
  return {
    forged: (topic, reason) => forged.labels(topic, reason).inc(),
    unsignedAccepted: (topic) => accepted.labels(topic).inc(),
  };
}
