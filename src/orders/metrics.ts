import type { Registry } from 'prom-client';
import { metricMakers } from '../core/metric-makers.js';
import type { OutboxBacklog, OutboxKind } from '../core/ports/outbox.js';
import type { ChargeOutcome, RefundOutcome } from '../core/ports/payment-provider.js';
import type { ResolvedAttempt } from '../core/ports/payment-attempts.js';

/** How one delivery of a batch ended. */
export type DeliveryVerdict =
  | 'recorded'
  | 'already_recorded'
  | 'refused'
  | 'retry'
  | 'not_marked'
  | 'undecodable'
  | 'unknown_version'
  | 'unknown_sale'
  | 'retries_exhausted';

/**
 * Why rows could not be written yet. Three reasons apply to batches of an older epoch, which take their units again
 * first: `repairing` (the sale is being rebuilt), `not_warmed` (Redis does not have the sale), `held_elsewhere`
 * (purchases wait for a row of another batch).
 */
export type RetryReason =
  | 'unavailable'
  | 'contended'
  | 'no_order_ids'
  | 'poison'
  | 'repairing'
  | 'not_warmed'
  | 'held_elsewhere';

/** How one delivery of a message to a consumer group ended. `dead_letter` means that the last delivery failed. */
export type ConsumeVerdict = 'done' | 'later' | 'failed' | 'dead_letter' | 'undecodable' | 'unknown_version';

/** How long the order may take to follow `accepted`. */
const IN_TIME_MS = 5_000;

export type WorkerMetrics = ReturnType<typeof createWorkerMetrics>;

/** Creates the metrics of the worker. Each is written once per batch or transaction. */
export function createWorkerMetrics(registry: Registry) {
  const { counter, gauge, histogram } = metricMakers(registry);
  const received = counter('seckill_deliveries_received_total', 'Messages received.');
  const checkedBack = counter('seckill_deliveries_checked_back_total', 'Messages that a check-back committed.');
  const verdicts = counter('seckill_deliveries_total', 'Messages by result.', ['verdict']);
  const purchases = counter('seckill_recorded_purchases_total', 'Purchases by the result of their message.', [
    'verdict',
  ]);
  purchases.labels('recorded').inc(0); // starts at 0, or the first purchases would be missing from every rate
  const retries = counter('seckill_record_retries_total', 'Failed attempts to write a batch.', ['reason']);
  const written = histogram('seckill_record_seconds', 'Time to write batches, with all retries.');
  const delivered = histogram(
    'seckill_delivery_seconds',
    'Time from the creation of a batch until a worker received it, on the clocks of two machines.',
  );
  const inTime = counter(
    'seckill_recorded_in_time_purchases_total',
    'Purchases recorded within 5 s of their batch; seckill_recorded_purchases_total{verdict="recorded"} counts all.',
  );
  const marked = histogram('seckill_mark_recorded_seconds', 'Marking batches as recorded in Redis.');
  const rows = histogram('seckill_record_rows', 'Purchases in one MySQL transaction.', {
    buckets: [1, 8, 32, 128, 256, 512, 1024, 2048, 4096],
  });
  const aside = gauge(
    'seckill_deliveries_aside',
    'Messages of sales that are being rebuilt, held until they can be recorded.',
    ['group'],
  );
  const outage = gauge('seckill_mysql_outage', '1 while the worker receives nothing because MySQL is down.');
  return {
    received: (deliveries: number): void => received.inc(deliveries),
    /** Counts a batch about which the broker had to ask, because its commit was late or lost. */
    checkedBack: (): void => checkedBack.inc(),
    /** @param size number of purchases, or 0 if the body could not be read */
    delivered(verdict: DeliveryVerdict, size: number): void {
      verdicts.labels(verdict).inc();
      purchases.labels(verdict).inc(size);
    },
    retried: (reason: RetryReason): void => retries.labels(reason).inc(),
    /**
     * Counts an attempt to record batches, whatever its end.
     * @param size number of purchases in the batches
     * @param tookMs from reading the terms to COMMIT, with every attempt
     */
    batchesWritten(size: number, tookMs: number): void {
      rows.observe(size);
      written.observe(tookMs / 1000);
    },
    /** @param ageMs age of the batch when it was received */
    batchReceived: (ageMs: number): void => delivered.observe(Math.max(0, ageMs) / 1000),
    /** @param ageMs age of the batch when its rows were committed */
    recorded(size: number, ageMs: number): void {
      if (ageMs <= IN_TIME_MS) inTime.inc(size);
    },
    markedRecorded: (tookMs: number): void => marked.observe(tookMs / 1000),
    mysqlOutage: (isOut: boolean): void => outage.set(isOut ? 1 : 0),
    setAside: (group: string, deliveries: number): void => aside.labels(group).set(deliveries),
  };
}

export type ConsumerMetrics = ReturnType<typeof createConsumerMetrics>;

/**
 * @param group gets a count of dead letters from 0, so that an alert sees the first rise. Omitted if no alert watches
 * it
 */
export function createConsumerMetrics(registry: Registry, group?: string) {
  const { counter } = metricMakers(registry);
  const consumed = counter('seckill_consumed_messages_total', 'Messages by group and result.', ['group', 'verdict']);
  if (group !== undefined) consumed.labels(group, 'dead_letter').inc(0);
  return {
    consumed: (group: string, verdict: ConsumeVerdict): void => consumed.labels(group, verdict).inc(),
  };
}

/** @returns counts a charge by its outcome */
export function createChargeMetrics(registry: Registry): (outcome: ChargeOutcome['outcome']) => void {
  const { counter } = metricMakers(registry);
  const charges = counter(
    'seckill_charges_total',
    'Charges that an api requested from the payment provider, by answer.',
    ['outcome'],
  );
  for (const outcome of ['succeeded', 'declined']) charges.labels(outcome).inc(0); // or the first would be missing from every rate
  return (outcome) => charges.labels(outcome).inc();
}

export type OrderJobMetrics = ReturnType<typeof createOrderJobMetrics>;

export function createOrderJobMetrics(registry: Registry) {
  const { counter, gauge } = metricMakers(registry);
  const relayed = {
    published: counter('seckill_outbox_published_rows_total', 'Outbox rows that are done.', ['kind']),
    retried: counter('seckill_outbox_retried_rows_total', 'Failed attempts of outbox rows, which are retried.', [
      'kind',
    ]),
  };
  const undone = gauge('seckill_outbox_undone_rows', 'Outbox rows that are not done.', ['kind']);
  const oldest = gauge('seckill_outbox_oldest_seconds', 'Age of the oldest row that is not done. Alert on it.', [
    'kind',
  ]);
  const removed = counter('seckill_outbox_removed_rows_total', 'Old finished outbox rows that were removed.');
  const released = counter('seckill_released_requests_total', 'Requests whose units were returned.');
  const difference = gauge(
    'seckill_clock_difference_seconds',
    'Minimum difference between the clocks of a server and of this process. Above 2 s no order expires.',
    ['server'],
  );
  const expired = counter('seckill_expired_orders_total', 'Unpaid orders ended at their deadline.');
  const notified = counter('seckill_notified_orders_total', 'Orders whose waiting buyers were notified.');
  const coupons = counter('seckill_coupons_total', 'Coupons given for paid orders.');
  const attempts = counter(
    'seckill_payment_attempts_resolved_total',
    'Unfinished charges, by what the payment provider says about them.',
    ['state'],
  );
  const refunds = counter('seckill_refund_tries_total', 'Attempts to refund a payment, by outcome.', ['outcome']);
  return {
    relayed: (kind: OutboxKind, result: 'published' | 'retried', rows: number): void =>
      relayed[result].labels(kind).inc(rows),
    backlog(backlog: OutboxBacklog): void {
      undone.labels(backlog.kind).set(backlog.undone);
      oldest.labels(backlog.kind).set(backlog.oldestMs / 1000);
    },
    removed: (rows: number): void => removed.inc(rows),
    released: (requests: number): void => released.inc(requests),
    /** @param aheadMs the largest difference among the Redis servers */
    clockAhead: (server: 'mysql' | 'redis', aheadMs: number): void =>
      difference.labels(server).set(Math.abs(aheadMs) / 1000),
    expired: (orders: number): void => expired.inc(orders),
    ...createConsumerMetrics(registry),
    notificationsSent: (orders: number): void => notified.inc(orders),
    couponsIssued: (number: number): void => coupons.inc(number),
    /** Counts a payment attempt that an api left open, by its state after the provider has answered. */
    attemptResolved: (state: ResolvedAttempt): void => attempts.labels(state).inc(),
    refundTried: (outcome: RefundOutcome['outcome']): void => refunds.labels(outcome).inc(),
  };
}
