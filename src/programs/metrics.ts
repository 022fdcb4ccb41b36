import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { ChannelMetrics } from '../core/ports/channel-metrics.js';
import type { HttpMetrics } from '../core/ports/http-metrics.js';
import type { NotificationsMetrics } from '../core/ports/notifications-metrics.js';
import type { BatchVerdict, PurchaseMetrics } from '../core/ports/purchase-metrics.js';

/** Upper bounds in seconds: a purchase should take milliseconds and must not take seconds. */
const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];
const SIZES = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

/** The api: group commit. */
export function createPurchaseMetrics(
  registry: Registry,
  queue: () => { readonly waiting: number; readonly inFlight: number },
): PurchaseMetrics {
  const registers = [registry];
  const verdicts = new Counter({
    ...{ name: 'seckill_batches_total', help: 'Batches by how they ended.', labelNames: ['verdict'], registers },
  });
  const sizes = new Histogram({
    ...{ name: 'seckill_batch_size', help: 'Purchases per batch.', buckets: SIZES, registers },
  });
  const took = new Histogram({
    name: 'seckill_batch_seconds',
    help: 'From precheck to the commit or rollback of a batch.',
    buckets: SECONDS,
    registers,
  });
  const waited = new Histogram({
    name: 'seckill_queue_wait_seconds',
    help: 'How long the oldest purchase of a batch had waited for it.',
    buckets: SECONDS,
    registers,
  });
  gauge(registry, 'seckill_queue_purchases', 'Purchases waiting for a batch.', () => queue().waiting);
  gauge(registry, 'seckill_batches_in_flight', 'Batches under way.', () => queue().inFlight);
  const byVerdict = new Map<BatchVerdict, Counter.Internal>();
  return {
    batchPlaced(verdict, size, tookMs) {
      let counter = byVerdict.get(verdict);
      if (!counter) byVerdict.set(verdict, (counter = verdicts.labels(verdict)));
      counter.inc();
      sizes.observe(size);
      took.observe(tookMs / 1000);
    },
    queueWaited: (waitedMs) => waited.observe(waitedMs / 1000),
  };
}

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

/** The api: answers by route and word. */
export function createHttpMetrics(registry: Registry): HttpMetrics {
  const registers = [registry];
  const answers = new Counter({
    name: 'seckill_http_answers_total',
    help: 'Answers by route and word.',
    labelNames: ['route', 'code'],
    registers,
  });
  const dropped = new Counter({
    name: 'seckill_http_connections_dropped_total',
    help: 'Connections closed because too many were open.',
    registers,
  });
  return {
    answered: (route, code) => {
      const counter = answers.labels(route, code);
      return () => counter.inc();
    },
    connectionDropped: () => dropped.inc(),
  };
}

/** The api: buyers who wait. */
export function createNotificationsMetrics(registry: Registry, streams: () => number): NotificationsMetrics {
  const found = new Counter({
    name: 'seckill_awaited_changes_total',
    help: 'Changes that a buyer waited for, by what told of them: news, or a look where none had come.',
    labelNames: ['found_by'],
    registers: [registry],
  });
  gauge(registry, 'seckill_event_streams', 'Streams of events that are open.', streams);
  return { changeFound: (by) => found.labels(by).inc() };
}

function gauge(registry: Registry, name: string, help: string, read: () => number): void {
  new Gauge({
    name,
    help,
    registers: [registry],
    collect() {
      this.set(read());
    },
  });
}
