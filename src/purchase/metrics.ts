import type { Counter, Registry } from 'prom-client';
import { metricMakers } from '../core/metric-makers.js';

/** `bucket_empty`: no purchase is accepted yet, and units are fetched from other buckets. */
export type BatchVerdict =
  | 'all_answered_by_precheck'
  | 'bucket_empty'
  | 'accepted'
  | 'refused'
  | 'aborted'
  /** Redis refused the batch for good, so its halves were placed as batches of their own. */
  | 'refused_by_store'
  | 'unavailable'
  | 'outcome_unknown';

/** The steps of a batch that wait for Redis or the broker. */
export type BatchStep = 'precheck' | 'half' | 'deduct' | 'commit' | 'rollback';

/** How the change that a buyer waited for was found. */
export type FoundBy = 'notification' | 'read';

const BATCH_SIZES = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

export type PurchaseMetrics = ReturnType<typeof createPurchaseMetrics>;

/** The hot path writes these metrics once per batch. @param queue read when the metrics are collected */
export function createPurchaseMetrics(
  registry: Registry,
  queue: () => { readonly waiting: number; readonly inFlight: number },
) {
  const { counter, readGauge, histogram } = metricMakers(registry);
  const batches = counter('seckill_batches_total', 'Batches by result.', ['verdict']);
  const sizes = histogram('seckill_batch_size', 'Purchases per batch.', { buckets: BATCH_SIZES });
  const seconds = histogram('seckill_batch_seconds', 'Time from precheck to the commit or rollback of a batch.');
  const waited = histogram(
    'seckill_queue_wait_seconds',
    'Time that the oldest purchase of a batch waited for the batch to start.',
  );
  const steps = histogram(
    'seckill_batch_step_seconds',
    'Time of each step of a batch, in Redis (precheck, deduct) or the broker (half, commit, rollback).',
    { labelNames: ['step'] },
  );
  readGauge('seckill_queue_purchases', 'Purchases waiting for a batch.', () => queue().waiting);
  readGauge('seckill_batches_in_flight', 'Batches in progress.', () => queue().inFlight);
  const byVerdict = new Map<BatchVerdict, Counter.Internal>();
  return {
    /** @param tookMs time from precheck to commit or rollback */
    batchPlaced(verdict: BatchVerdict, size: number, tookMs: number): void {
      let counter = byVerdict.get(verdict);
      if (!counter) byVerdict.set(verdict, (counter = batches.labels(verdict)));
      counter.inc();
      sizes.observe(size);
      seconds.observe(tookMs / 1000);
    },
    stepTook(step: BatchStep, tookMs: number): void {
      steps.labels(step).observe(tookMs / 1000);
    },
    /** @param waitedMs how long the oldest purchase of a batch was queued */
    queueWaited(waitedMs: number): void {
      waited.observe(waitedMs / 1000);
    },
  };
}

export type StatusMetrics = ReturnType<typeof createStatusMetrics>;

/** @param streams number of open event streams, read when the metrics are collected */
export function createStatusMetrics(registry: Registry, streams: () => number) {
  const { counter, readGauge } = metricMakers(registry);
  const found = counter(
    'seckill_awaited_changes_total',
    'Changes that a buyer waited for, by how the api learned them: by a notification, or by reading the stores.',
    ['found_by'],
  );
  readGauge('seckill_event_streams', 'Event streams that are open.', streams);
  return {
    changeFound(by: FoundBy): void {
      found.labels(by).inc();
    },
  };
}
