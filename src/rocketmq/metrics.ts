import { Counter, Histogram, type Registry } from 'prom-client';
import type { CheckBackAnswer } from '../core/ports/channels.js';

/** Upper bounds in seconds: a purchase should take milliseconds and must not take seconds. */
const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

/** Metrics of the purchase channel. */
export type ChannelMetrics = ReturnType<typeof createChannelMetrics>;

export function createChannelMetrics(registry: Registry) {
  const registers = [registry];
  const sends = new Histogram({
    name: 'seckill_half_send_seconds',
    help: 'How long a half message took, by what became of it.',
    labelNames: ['outcome'],
    buckets: SECONDS,
    registers,
  });
  const checks = new Counter({
    name: 'seckill_check_backs_total',
    help: 'Questions of the broker about an open half message, by our answer.',
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
    /** @param elapsedMs from the call to its answer */
    halfSent: (outcome: 'stored' | 'unavailable' | 'outcome_unknown', elapsedMs: number): void =>
      sends.labels(outcome).observe(elapsedMs / 1000),
    checkedBack: (answer: CheckBackAnswer): void => checks.labels(answer).inc(),
    /** The broker did not say OK to the end of a half message; a check-back follows. */
    endFailed: (verb: 'commit' | 'rollback'): void => failed.labels(verb).inc(),
  };
}
