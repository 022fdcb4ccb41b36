import { DEAD_LETTERS, GROUP_TOPICS, GROUPS } from '../../../src/core/topics.js';
import { collectDeadLetters } from '../../../src/recovery/dead-letters/collect-dead-letters.js';
import { consumeMessages } from '../../../src/orders/consume-messages.js';
import { expireByMessage, expireBySweep } from '../../../src/orders/expire-orders.js';
import { finishTransfers } from '../../../src/sales/stock/finish-transfers.js';
import { keepRunning, type Job } from '../../../src/core/job.js';
import type { OrderJobMetrics } from '../../../src/orders/metrics.js';
import {
  groupMoved,
  groupRecorded,
  publishMoved,
  publishRecorded,
  releaseUnits,
} from '../../../src/orders/outbox-handlers.js';
import { payRefunds } from '../../../src/orders/pay-refunds.js';
import { redrive } from '../../../src/recovery/redrive.js';
import { relayOutbox } from '../../../src/orders/relay-outbox.js';
import { markRecorded } from '../../../src/recovery/mark-recorded.js';
import { notifyBuyers } from '../../../src/orders/notify-buyers.js';
import { createPaymentSimulator } from '../../../src/payment/simulator.js';
import type { RecoveryMetrics } from '../../../src/recovery/metrics.js';
import { Life, NEVER_ABORTED } from '../engine/simulated-process.js';
import { through } from '../engine/with-faults.js';
import { onBug, type Site } from '../simulated-system.js';
import { notificationsRowsOf, orderStatesOf } from './repository-reads.js';
import { repairers } from './repairer.js';
import { reconcilers } from './reconciler.js';
import { sourceOf } from './source.js';

type KeeperMetrics = ReturnType<typeof metricsOf>;

const RESTART_MAX_MS = 6_000;
/** A receive waits for messages by itself. */
const RECEIVE_EVERY_MS = 200;
const REFUND_LEASE_MS = 10_000;
const BATCHES_PER_RUN = 100;

/** A keeper process with the jobs that the program has, but coupons, tidying and the watching ones. */
export class Keeper {
  readonly #site: Site;
  readonly #name: string;

  constructor(site: Site, name: string) {
    this.#site = site;
    this.#name = name;
    this.start();
  }

  start(): void {
    const { scheduler, rng, shape, log } = this.#site;
    const life = new Life(this.#site, this.#name);
    life.onDeath(() => {
      this.#site.count('process: keeper died');
      scheduler.after(rng.range(1, RESTART_MAX_MS), () => this.start());
    });
    const metrics = metricsOf(this.#site);
    const keep = (jobs: readonly Job[], everyMs: number): void => {
      const ports = { clock: life.clock, log, metrics };
      for (const job of jobs) keepRunning(job, everyMs, NEVER_ABORTED, ports).catch(onBug(this.#site));
    };
    keep([...menders(life, this.#site, metrics), ...relays(life, this.#site, metrics)], shape.jobEveryMs);
    keep(repairers(life, this.#site), shape.repairEveryMs);
    if (shape.reconcileEveryMs !== null) keep(reconcilers(life, this.#site), shape.reconcileEveryMs);
    keep([...collectors(life, this.#site, metrics), ...consumers(life, this.#site, metrics)], RECEIVE_EVERY_MS);
  }
}

function menders(life: Life, site: Site, metrics: KeeperMetrics): Job[] {
  const { shape, books, log, broker } = site;
  const { clock } = life;
  const sales = through(life, 'mysql', books, ['list']);
  const repository = through(life, 'mysql', books, ['findByPurchases']);
  const moves = through(life, 'mysql', site.servers.moves, ['expireDue', 'overdue']);
  const store = through(life, 'redis', site.servers.settlement, ['withPending', 'stalePending', 'markRecorded']);
  const transfers = through(life, 'redis', site.servers.transfers, [
    'read',
    'transferOut',
    'transferIn',
    'endTransfer',
  ]);
  const channel = through(life, 'rocketmq', broker.redriveChannel(), ['publish']);
  const refunds = through(life, 'mysql', site.refunds, ['lease', 'markRefunded', 'postpone']);
  return [
    markRecorded(
      { sales, store, repository, metrics },
      { afterMs: shape.settleAfterMs, maxPerBucket: BATCHES_PER_RUN },
    ),
    redrive({ sales, store, channel, clock, log, metrics }, { afterMs: shape.redriveAfterMs, max: 50 }),
    finishTransfers({ sales, store: transfers, metrics }, { afterMs: shape.transferAfterMs, overdueMs: 60_000 }),
    expireBySweep({ moves, metrics }, { max: 1_000 }),
    payRefunds({ refunds, provider: createPaymentSimulator(), metrics, log }, { max: 16, leaseMs: REFUND_LEASE_MS }),
  ];
}

function collectors(life: Life, site: Site, metrics: KeeperMetrics): Job[] {
  const { shape, log } = site;
  const repository = through(life, 'mysql', site.books, ['findByPurchases']);
  const deadLetters = through(life, 'mysql', site.deadLetters, ['park']);
  const store = through(life, 'redis', site.servers.settlement, ['markRecorded', 'park']);
  return ([GROUPS.writer, GROUPS.redriveWriter] as const).map((group) => {
    const { topic, collector } = DEAD_LETTERS[group];
    const source = sourceOf(life, site, { topic, group: collector, invisibleMs: shape.invisibleMs });
    return collectDeadLetters({ source, deadLetters, store, repository, log, metrics }, { group, topic });
  });
}

/** The groups that the keeper works for. */
function consumers(life: Life, site: Site, metrics: KeeperMetrics): Job[] {
  const { shape, log, deadLetters } = site;
  const moves = through(life, 'mysql', site.servers.moves, ['expire']);
  const sender = through(life, 'redis', site.notifications, ['hasListeners', 'send']);
  const ready = (): Promise<void> => life.call('mysql', 'probe', async () => undefined, []);
  const works = [
    { group: GROUPS.expirer, handle: expireByMessage({ moves, orders: orderStatesOf(life, site), metrics }) },
    { group: GROUPS.notifier, handle: notifyBuyers({ orders: notificationsRowsOf(life, site), sender, metrics }) },
  ];
  return works.map(({ group, handle }) => {
    const way = { group, topic: GROUP_TOPICS[group] };
    const { invisibleMs } = shape;
    const source = sourceOf(life, site, { ...way, invisibleMs });
    return consumeMessages(
      { source, ready, handle, deadLetters, clock: life.clock, log, metrics },
      { ...way, invisibleMs },
    );
  });
}

function relays(life: Life, site: Site, metrics: KeeperMetrics): Job[] {
  const { shape, log } = site;
  const outbox = through(life, 'mysql', site.servers.outbox, ['lease', 'markDone', 'postpone']);
  const store = through(life, 'redis', site.servers.settlement, ['release']);
  const memory = site.broker.orderChannels();
  const deadlines = through(life, 'rocketmq', memory.deadlines, ['publish']);
  const events = through(life, 'rocketmq', memory.events, ['publish']);
  const ports = { outbox, log, metrics };
  const lease = { max: 64, leaseMs: shape.outboxLeaseMs };
  return [
    relayOutbox(
      { ...ports, handle: publishRecorded({ deadlines, events }), group: groupRecorded },
      { ...lease, kind: 'batch_recorded' },
    ),
    relayOutbox({ ...ports, handle: publishMoved({ events }), group: groupMoved }, { ...lease, kind: 'orders_moved' }),
    relayOutbox({ ...ports, handle: releaseUnits(store, metrics) }, { ...lease, kind: 'release' }),
  ];
}

function metricsOf(site: Site): OrderJobMetrics &
  Pick<RecoveryMetrics, 'redriven' | 'markedLate' | 'overdue' | 'parked' | 'pending'> & {
    jobRan(job: string, result: 'done' | 'failed'): void;
  } {
  const some = (what: string) => (number: number) => {
    if (number > 0) site.count(`keeper: ${what}`);
  };
  return {
    jobRan: (_, result) => site.count(`job: ${result}`),
    redriven: some('re-driven'),
    markedLate: some('marked late'),
    released: some('released'),
    expired: some('expired'),
    overdue: () => undefined,
    parked: some('parked'),
    pending: () => undefined,
    relayed: (kind, result, rows) => {
      if (rows > 0) site.count(`relay: ${kind} ${result}`);
    },
    backlog: () => undefined,
    removed: () => undefined,
    consumed: (_, verdict) => site.count(`consumed: ${verdict}`),
    refundTried: (outcome) => site.count(`refund: ${outcome}`),
    notificationsSent: some('buyers notified'),
    couponsIssued: () => undefined,
  };
}
