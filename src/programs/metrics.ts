import { Counter, Histogram, type Registry } from 'prom-client';
import type { ChannelMetrics } from '../core/ports/channel-metrics.js';

/** Upper bounds in seconds: a purchase should take milliseconds and must not take seconds. */
const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

/** The api: the way to the broker. */
export function createChannelMetrics(registry: Registry): ChannelMetrics {
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
    halfSent: (outcome, elapsedMs) => sends.labels(outcome).observe(elapsedMs / 1000),
    checkedBack: (answer) => checks.labels(answer).inc(),
    endFailed: (verb) => failed.labels(verb).inc(),
  };
}
