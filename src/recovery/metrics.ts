import type { Registry } from 'prom-client';
import { metricMakers } from '../core/metric-makers.js';
import { JOB_STATES, type JobState } from '../core/ports/compensation-repository.js';
import { FINDING_KINDS, type FindingKind } from '../core/sale-finding.js';
import type { ServerMemory } from '../core/store-memory.js';
import type { WatchedState } from '../core/waiting-states.js';

export type RecoveryMetrics = ReturnType<typeof createRecoveryMetrics>;

export interface MessageFigures {
  /** `down` says why a broker does not answer. */
  readonly brokers: readonly { readonly down: string | null }[];
  /** Null if no broker answers. */
  readonly held: HeldMessages | null;
}

/** Messages that RocketMQ holds, over all brokers that answer. */
interface HeldMessages {
  readonly groups: readonly {
    readonly group: string;
    readonly topic: string;
    /** Messages that no consumer of the group has received. `oldestMs` is null if there are none. */
    readonly lag: number;
    readonly oldestMs: number | null;
  }[];
  /** Half messages that have not been committed or rolled back. */
  readonly halves: { readonly open: number; readonly oldestMs: number | null };
  /** Number of half messages that the broker has given up. */
  readonly discarded: number;
}

export function createRecoveryMetrics(registry: Registry) {
  return {
    ...batchMetrics(registry),
    overdue: overdueMetric(registry),
    ...repairMetrics(registry),
    ...hotSaleMetrics(registry),
    ...reconcileMetrics(registry),
    ...retirementMetrics(registry),
    redisMemory: memoryMetric(registry),
    messages: messageMetrics(registry),
  };
}

function batchMetrics(registry: Registry) {
  const { counter, gauge } = metricMakers(registry);
  const redriven = counter('seckill_redriven_batches_total', 'Batches published again.');
  const marked = counter(
    'seckill_marked_late_batches_total',
    'Recorded batches that the keeper marked in Redis, because no worker had.',
  );
  const parked = counter('seckill_parked_messages_total', 'Dead letters parked.');
  const pending = gauge('seckill_pending_batches', 'Batches that are deducted and not marked as recorded.');
  const oldest = gauge(
    'seckill_pending_oldest_seconds',
    'Age of the oldest batch that is not marked as recorded. Alert on it.',
  );
  const waiting = gauge('seckill_dead_letters_parked', 'Parked dead letters, counted up to 10000. Alert on any.');
  return {
    /** Counts batches that were published again because no worker recorded them. */
    redriven: (batches: number): void => redriven.inc(batches),
    /** Counts batches that MySQL had while Redis still held them in `pending`. */
    markedLate: (batches: number): void => marked.inc(batches),
    parked: (messages: number): void => parked.inc(messages),
    deadLettersParked: (messages: number): void => waiting.set(messages),
    /** Sets the number of batches in `pending` over all sales, and the age of the oldest in ms. */
    pending(batches: number, oldestMs: number): void {
      pending.set(batches);
      oldest.set(oldestMs / 1000);
    },
  };
}

function overdueMetric(registry: Registry) {
  const { gauge } = metricMakers(registry);
  const counts = gauge('seckill_overdue', 'Items in a state past its deadline.', ['state']);
  const oldest = gauge('seckill_overdue_oldest_seconds', 'Delay of the oldest item past its deadline.', ['state']);
  /** Sets the number of overdue entries in a state, and how long ago the oldest should have ended, in ms. */
  return (state: WatchedState, count: number, oldestMs: number): void => {
    counts.labels(state).set(count);
    oldest.labels(state).set(oldestMs / 1000);
  };
}

function hotSaleMetrics(registry: Registry) {
  const { counter } = metricMakers(registry);
  const reshards = counter(
    'seckill_hot_sale_reshards_total',
    'Hot sales that the keeper split into more buckets, by result. Alert on `failed`.',
    ['result'],
  );
  for (const result of ['begun', 'resharded', 'failed'] as const) reshards.labels(result).inc(0);
  return {
    hotSaleResharded: (result: 'begun' | 'resharded' | 'failed'): void => reshards.labels(result).inc(),
  };
}

function repairMetrics(registry: Registry) {
  const { counter, gauge, histogram } = metricMakers(registry);
  const tries = counter('seckill_sale_repairs_total', 'Repairs of a sale by result.', ['result']);
  const seconds = histogram(
    'seckill_sale_repair_seconds',
    'Duration of completed repairs, from the lock to the swap.',
    { buckets: [0.1, 0.5, 1, 2, 5, 10, 20, 60, 300] },
  );
  const waiting = gauge(
    'seckill_sales_in_repair',
    'Sales that wait for a repair. Nobody can buy in a live sale that waits.',
    ['sales'],
  );
  return {
    /** @param tookMs from the first command of the repair to its last */
    repairTried(result: 'repaired' | 'busy' | 'superseded' | 'failed', tookMs: number): void {
      tries.labels(result).inc();
      if (result === 'repaired') seconds.observe(tookMs / 1000);
    },
    /** Sets the number of sales that wait for a repair. The live ones cannot sell until then. */
    salesInRepair(live: number, closed: number): void {
      waiting.labels('live').set(live);
      waiting.labels('closed').set(closed);
    },
  };
}

function retirementMetrics(registry: Registry) {
  const { counter, gauge } = metricMakers(registry);
  const retired = counter('seckill_retired_sales_total', 'Sales that left Redis.');
  const archived = counter('seckill_archived_orders_total', 'Orders that moved to the archive.');
  const toArchive = gauge(
    'seckill_sales_to_archive',
    'Retired sales whose orders are due for the archive, counted up to 1000.',
  );
  return {
    saleRetired: (): void => retired.inc(),
    ordersArchived: (orders: number): void => archived.inc(orders),
    salesToArchive: (sales: number): void => toArchive.set(sales),
  };
}

function memoryMetric(registry: Registry) {
  const { gauge } = metricMakers(registry);
  const used = gauge('seckill_redis_memory_used_bytes', 'Memory that a Redis master uses.', ['server']);
  const max = gauge(
    'seckill_redis_memory_max_bytes',
    'Memory that a Redis master may use: `maxmemory`, or the memory of its machine.',
    ['server'],
  );
  const days = gauge(
    'seckill_redis_memory_days_left',
    'Days until the memory is full, at the growth of the last day.',
    ['server'],
  );
  /** Memory of every master. `daysLeft` is null if no rate is known yet. */
  return (servers: readonly (ServerMemory & { readonly daysLeft: number | null })[]): void => {
    for (const metric of [used, max, days]) metric.reset(); // removes servers that are gone
    for (const { server, usedBytes, maxBytes, daysLeft } of servers) {
      used.labels(server).set(usedBytes);
      max.labels(server).set(maxBytes);
      if (daysLeft !== null) days.labels(server).set(daysLeft);
    }
  };
}

function messageMetrics(registry: Registry) {
  const { gauge } = metricMakers(registry);
  const lag = gauge('seckill_mq_lag', 'Messages that no consumer of the group has received.', ['group', 'topic']);
  const oldest = gauge('seckill_mq_oldest_seconds', 'Age of the oldest such message. Alert on it.', ['group', 'topic']);
  const uncollected = gauge('seckill_mq_dlq_depth', 'Dead letters that no keeper has collected yet.', ['topic']);
  const open = gauge('seckill_mq_half_open', 'Half messages without a commit or rollback.');
  const openOldest = gauge('seckill_mq_half_oldest_seconds', 'Age of the oldest such message. Alert on it.');
  const discarded = gauge('seckill_mq_half_discarded', 'Half messages that the broker gave up on and still keeps.');
  const down = gauge(
    'seckill_mq_brokers_down',
    'Brokers of the cluster that do not answer. 1 if no name server knows a broker.',
  );
  const forget = (): void => {
    for (const metric of [lag, oldest, uncollected]) metric.reset();
    for (const metric of [open, openOldest, discarded, down]) metric.remove(); // `reset` would set it to 0
  };
  forget();
  /** Null if this process does not know the figures. */
  return (figures: MessageFigures | null): void => {
    forget();
    if (figures === null) return;
    down.set(figures.brokers.filter((broker) => broker.down !== null).length);
    const { held } = figures;
    if (held === null) return;
    for (const { group, topic, lag: messages, oldestMs } of held.groups) {
      if (topic.startsWith('%DLQ%')) uncollected.labels(topic).set(messages);
      else {
        lag.labels(group, topic).set(messages);
        oldest.labels(group, topic).set((oldestMs ?? 0) / 1000);
      }
    }
    open.set(held.halves.open);
    openOldest.set((held.halves.oldestMs ?? 0) / 1000);
    discarded.set(held.discarded);
  };
}

function reconcileMetrics(registry: Registry) {
  const { gauge, readGauge } = metricMakers(registry);
  const found = gauge(
    'seckill_reconcile_findings',
    'Findings of the last comparison of Redis and MySQL. Alert on any.',
    ['kind'],
  );
  const jobs = gauge('seckill_compensation_jobs', 'Compensation jobs by state. Alert on failed_final.', ['state']);
  let lastRunMs = performance.now();
  readGauge(
    'seckill_reconcile_last_run_seconds',
    'Time since the end of the last comparison, or since the start of the program.',
    () => (performance.now() - lastRunMs) / 1000,
  );
  return {
    /** @param findings by kind; a missing kind counts as 0 */
    reconciled(findings: Readonly<Partial<Record<FindingKind, number>>>): void {
      lastRunMs = performance.now();
      for (const kind of FINDING_KINDS) found.labels(kind).set(findings[kind] ?? 0);
    },
    compensationJobs(counts: Readonly<Record<JobState, number>>): void {
      for (const state of JOB_STATES) jobs.labels(state).set(counts[state]);
    },
  };
}
