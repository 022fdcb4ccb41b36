import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { ChannelMetrics } from '../core/ports/channel-metrics.js';
import type { HttpMetrics } from '../core/ports/http-metrics.js';
import type { KeeperMetrics } from '../core/ports/keeper-metrics.js';
import { FINDING_KINDS } from '../core/sale-finding.js';
import { JOB_STATES } from '../core/ports/compensation-repository.js';
import type { ReconcileMetrics } from '../core/ports/reconcile-metrics.js';
import type { RepairMetrics } from '../core/ports/repair-metrics.js';
import type { BreakerState, WorkerMetrics } from '../core/ports/worker-metrics.js';

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

const BREAKER_LEVELS: Record<BreakerState, number> = { closed: 0, half_open: 1, open: 2 };

/** The worker. */
export function createWorkerMetrics(registry: Registry): WorkerMetrics {
  const registers = [registry];
  const count = (name: string, help: string, labelNames: string[] = []): Counter =>
    new Counter({ name, help, labelNames, registers });
  const received = count('seckill_deliveries_received_total', 'Messages received.');
  const rescued = count('seckill_deliveries_checked_back_total', 'Messages that came by check-back.');
  const verdicts = count('seckill_deliveries_total', 'Messages by how they ended.', ['verdict']);
  const purchases = count('seckill_recorded_purchases_total', 'Purchases by how their message ended.', ['verdict']);
  const retries = count('seckill_record_retries_total', 'Batches that could not be written at once.', ['reason']);
  const seconds = (name: string, help: string): Histogram => new Histogram({ name, help, buckets: SECONDS, registers });
  const wrote = seconds('seckill_record_seconds', 'One try to write batches, with every attempt in it.');
  const settled = seconds('seckill_settle_seconds', 'Telling Redis what was written.');
  const rows = new Histogram({
    name: 'seckill_record_rows',
    help: 'Purchases in one MySQL transaction.',
    buckets: [1, 8, 32, 128, 256, 512, 1024, 2048, 4096],
    registers,
  });
  const breaker = new Gauge({
    name: 'seckill_mysql_breaker',
    help: 'The breaker around MySQL: 0 closed, 1 half open, 2 open.',
    registers,
  });
  return {
    received: (deliveries) => received.inc(deliveries),
    checkedBack: () => rescued.inc(),
    delivered: (verdict, size) => {
      verdicts.labels(verdict).inc();
      purchases.labels(verdict).inc(size);
    },
    retried: (reason) => retries.labels(reason).inc(),
    batchesWritten: (_batches, size, tookMs) => {
      rows.observe(size);
      wrote.observe(tookMs / 1000);
    },
    settled: (tookMs) => settled.observe(tookMs / 1000),
    breaker: (state) => breaker.set(BREAKER_LEVELS[state]),
  };
}

/** The keeper. */
export function createKeeperMetrics(registry: Registry): KeeperMetrics {
  const registers = [registry];
  const count = (name: string, help: string): Counter => new Counter({ name, help, registers });
  const runs = new Histogram({
    name: 'seckill_keeper_job_seconds',
    help: 'Runs of a job by result.',
    labelNames: ['job', 'result'],
    buckets: SECONDS,
    registers,
  });
  const redriven = count('seckill_redriven_batches_total', 'Batches published again.');
  const settled = count('seckill_settled_late_batches_total', 'Recorded batches that no worker had settled.');
  const released = count('seckill_released_requests_total', 'Requests whose units went back.');
  const expired = count('seckill_expired_orders_total', 'Unpaid orders ended at their deadline.');
  const parked = count('seckill_parked_messages_total', 'Dead letters parked.');
  const pendingBatches = new Gauge({
    name: 'seckill_pending_batches',
    help: 'Batches deducted and not settled.',
    registers,
  });
  const pendingOldest = new Gauge({
    name: 'seckill_pending_oldest_seconds',
    help: 'Age of the oldest batch that is not settled. Alert on it.',
    registers,
  });
  const refundTries = new Counter({
    name: 'seckill_refund_tries_total',
    help: 'Tries to give money back by what the provider said.',
    labelNames: ['outcome'],
    registers,
  });
  return {
    jobRan: (job, result, tookMs) => runs.labels(job, result).observe(tookMs / 1000),
    redriven: (batches) => redriven.inc(batches),
    settledLate: (batches) => settled.inc(batches),
    released: (requests) => released.inc(requests),
    expired: (orders) => expired.inc(orders),
    parked: (messages) => parked.inc(messages),
    pending: (batches, oldestMs) => {
      pendingBatches.set(batches);
      pendingOldest.set(oldestMs / 1000);
    },
    ...createRelayMetrics(registry),
    overdue: createOverdueMetric(registry),
    refundTried: (outcome) => refundTries.labels(outcome).inc(),
  };
}

/** The keeper: what waits too long. */
function createOverdueMetric(registry: Registry): KeeperMetrics['overdue'] {
  const level = (name: string, help: string): Gauge =>
    new Gauge({ name, help, labelNames: ['state'], registers: [registry] });
  const counts = level('seckill_overdue', 'What waits in a state beyond its deadline.');
  const oldest = level('seckill_overdue_oldest_seconds', 'How long ago the oldest of them should have ended.');
  return (state, count, oldestMs) => {
    counts.labels(state).set(count);
    oldest.labels(state).set(oldestMs / 1000);
  };
}

type RelayMetrics = Pick<
  KeeperMetrics,
  'relayed' | 'backlog' | 'removed' | 'consumed' | 'couponsIssued' | 'notificationsSent'
>;

/** The keeper: the outbox, and the groups it works for. */
function createRelayMetrics(registry: Registry): RelayMetrics {
  const registers = [registry];
  const count = (name: string, help: string, labelNames: string[] = []): Counter =>
    new Counter({ name, help, labelNames, registers });
  const level = (name: string, help: string): Gauge => new Gauge({ name, help, labelNames: ['kind'], registers });
  const rows = {
    published: count('seckill_outbox_published_rows_total', 'Rows of the outbox that are done.', ['kind']),
    retried: count('seckill_outbox_retried_rows_total', 'Rows of the outbox that failed and wait.', ['kind']),
  };
  const undone = level('seckill_outbox_undone_rows', 'Rows of the outbox that are not done.');
  const oldest = level('seckill_outbox_oldest_seconds', 'Age of the oldest row that is not done. Alert on it.');
  const removed = count('seckill_outbox_removed_rows_total', 'Rows that were done long ago and are removed.');
  const verdicts = count('seckill_consumed_messages_total', 'Messages by group and how they ended.', [
    'group',
    'verdict',
  ]);
  const coupons = count('seckill_coupons_total', 'Coupons given for paid orders.');
  const told = count('seckill_news_orders_total', 'Orders whose news were told to buyers who wait.');
  return {
    notificationsSent: (number) => told.inc(number),
    relayed: (kind, result, number) => rows[result].labels(kind).inc(number),
    backlog: ({ kind, undone: number, oldestMs }) => {
      undone.labels(kind).set(number);
      oldest.labels(kind).set(oldestMs / 1000);
    },
    removed: (number) => removed.inc(number),
    consumed: (group, verdict) => verdicts.labels(group, verdict).inc(),
    couponsIssued: (number) => coupons.inc(number),
  };
}

/** The keeper: reconcile and compensation. */
export function createReconcileMetrics(registry: Registry): ReconcileMetrics {
  const registers = [registry];
  const found = new Gauge({
    name: 'seckill_reconcile_findings',
    help: 'Findings of the last comparison of Redis and MySQL. Alert on any.',
    labelNames: ['kind'],
    registers,
  });
  const jobs = new Gauge({
    name: 'seckill_compensation_jobs',
    help: 'Compensation jobs by state. Alert on failed_final.',
    labelNames: ['state'],
    registers,
  });
  let lastRunMs = performance.now();
  new Gauge({
    name: 'seckill_reconcile_last_run_seconds',
    help: 'How long ago the last comparison ended; before the first one, how long ago the program started.',
    registers,
    collect() {
      this.set((performance.now() - lastRunMs) / 1000);
    },
  });
  return {
    reconciled(findings) {
      lastRunMs = performance.now();
      for (const kind of FINDING_KINDS) found.labels(kind).set(findings[kind] ?? 0);
    },
    jobs(counts) {
      for (const state of JOB_STATES) jobs.labels(state).set(counts[state]);
    },
  };
}

/** The keeper: repairs of sales that Redis may have lost data of. */
export function createRepairMetrics(registry: Registry): RepairMetrics {
  const registers = [registry];
  const repairs = new Counter({
    name: 'seckill_sale_repairs_total',
    help: 'Repairs of a sale by result.',
    labelNames: ['result'],
    registers,
  });
  const seconds = new Histogram({
    name: 'seckill_sale_repair_seconds',
    help: 'Repairs that were done, from shut to reopened.',
    buckets: [0.1, 0.5, 1, 2, 5, 10, 20, 60, 300],
    registers,
  });
  const shut = new Gauge({
    name: 'seckill_sales_shut',
    help: 'Sales that wait for a repair: live ones, where nobody can buy meanwhile, and closed ones.',
    labelNames: ['sales'],
    registers,
  });
  return {
    repairTried(result, tookMs) {
      repairs.labels(result).inc();
      if (result === 'repaired') seconds.observe(tookMs / 1000);
    },
    salesShut(live, closed) {
      shut.labels('live').set(live);
      shut.labels('closed').set(closed);
    },
  };
}
