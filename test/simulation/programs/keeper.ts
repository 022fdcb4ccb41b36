import { DEAD_LETTERS, GROUP_TOPICS, GROUPS } from '../../../src/core/topics.js';
import { closeRecorded } from '../../../src/operate/dead-letters/close-recorded.js';
import { collectDeadLetters } from '../../../src/operate/dead-letters/collect-dead-letters.js';
import { consumeMessages } from '../../../src/orders/consume-messages.js';
import { ClockWatch } from '../../../src/orders/clock-watch.js';
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
import { resolvePayments } from '../../../src/orders/resolve-payments.js';
import { markRecorded } from '../../../src/recovery/mark-recorded.js';
import { notifyBuyers } from '../../../src/orders/notify-buyers.js';
import { createPaymentSimulator } from '../../../src/payment/simulator.js';
import type { RecoveryMetrics } from '../../../src/recovery/metrics.js';
import { SimulatedProcess, NEVER_ABORTED } from '../engine/simulated-process.js';
import { withFaults } from '../engine/with-faults.js';
import { onBug, type SimulatedSystem } from '../simulated-system.js';
import { notificationsRowsOf, orderStatesOf } from './repository-reads.js';
import { repairers } from './repairer.js';
import { reconcilers } from './reconciler.js';
import { signedMessagesOf } from './signed-messages.js';
import { sourceOf } from './source.js';
import { noRecoveryMetrics } from '../../helpers/no-metrics.js';
import { partial } from '../../helpers/partial.js';

type KeeperMetrics = ReturnType<typeof metricsOf>;

const RESTART_MAX_MS = 6_000;
/** Stores no notifications, which no simulated buyer reads. */
const NOTHING_STORED = { store: () => Promise.resolve() };

/** Short, because a receive waits for messages. */
const RECEIVE_EVERY_MS = 200;
const REFUND_LEASE_MS = 10_000;
const BATCHES_PER_RUN = 100;

/** A keeper process with the jobs of the program, except coupons, tidying and monitoring. */
export class Keeper {
  readonly #system: SimulatedSystem;
  readonly #name: string;

  constructor(system: SimulatedSystem, name: string) {
    this.#system = system;
    this.#name = name;
    this.start();
  }

  start(): void {
    const { scheduler, rng, shape, log } = this.#system;
    const proc = new SimulatedProcess(this.#system, this.#name);
    proc.onDeath(() => {
      this.#system.count('process: keeper died');
      scheduler.after(rng.range(1, RESTART_MAX_MS), () => this.start());
    });
    const metrics = metricsOf(this.#system);
    const keep = (jobs: readonly Job[], everyMs: number): void => {
      const ports = { clock: proc.clock, log, metrics };
      for (const job of jobs) keepRunning(job, everyMs, NEVER_ABORTED, ports).catch(onBug(this.#system));
    };
    keep(
      [...periodicJobs(proc, this.#system, metrics), ...outboxRelays(proc, this.#system, metrics)],
      shape.jobEveryMs,
    );
    keep(repairers(proc, this.#system), shape.repairEveryMs);
    if (shape.reconcileEveryMs !== null) keep(reconcilers(proc, this.#system), shape.reconcileEveryMs);
    keep(
      [...deadLetterCollectors(proc, this.#system, metrics), ...eventConsumers(proc, this.#system, metrics)],
      RECEIVE_EVERY_MS,
    );
  }
}

function periodicJobs(proc: SimulatedProcess, system: SimulatedSystem, metrics: KeeperMetrics): Job[] {
  const { shape, repositories, log, broker } = system;
  const { clock } = proc;
  const sales = withFaults(proc, 'mysql', repositories, ['list']);
  const repository = withFaults(proc, 'mysql', repositories, ['writtenBatches', 'findByPurchases', 'findOrder']);
  const transitions = withFaults(proc, 'mysql', system.servers.transitions, ['expireDue', 'pay']);
  const store = withFaults(proc, 'redis', system.servers.batches, [
    'withPending',
    'stalePending',
    'takeDue',
    'leaveAlone',
    'markRecorded',
  ]);
  const transfers = withFaults(proc, 'redis', system.servers.transfers, [
    'read',
    'transferOut',
    'transferIn',
    'endTransfer',
  ]);
  const channel = withFaults(proc, 'rocketmq', broker.redriveChannel(), ['publish']);
  const refunds = withFaults(proc, 'mysql', system.refunds, ['lease', 'markRefunded', 'postpone']);
  const cases = { note: () => Promise.resolve() }; // two keepers may safely return the same refund
  const attempts = withFaults(proc, 'mysql', system.attempts, ['lease', 'close', 'postpone']);
  return [
    markRecorded(
      { sales, store, repository, metrics },
      { afterMs: shape.markRecordedAfterMs, maxPerBucket: BATCHES_PER_RUN },
    ),
    redrive({ sales, store, channel, clock, log, metrics }, { afterMs: shape.redriveAfterMs, max: 50 }),
    finishTransfers({ sales, store: transfers, metrics }, { afterMs: shape.transferAfterMs, overdueMs: 60_000 }),
    expireBySweep({ transitions, clocks: clocksOf(proc, system, metrics), metrics }, { max: 1_000 }),
    resolvePayments(
      { repository, attempts, provider: createPaymentSimulator(), transitions, metrics, log },
      { max: 16, leaseMs: REFUND_LEASE_MS },
    ),
    payRefunds(
      { refunds, cases: partial(cases), provider: createPaymentSimulator(), metrics, log },
      { max: 16, leaseMs: REFUND_LEASE_MS },
    ),
  ];
}

/** Reads clocks without faults, which would only cause retries. */
const clocksOf = ({ clock }: SimulatedProcess, { repositories }: SimulatedSystem, metrics: KeeperMetrics): ClockWatch =>
  new ClockWatch({
    servers: { mysql: async () => repositories.clock.nowMs(), redis: () => [Promise.resolve(clock.nowMs())] },
    clock,
    metrics,
  });

function deadLetterCollectors(proc: SimulatedProcess, system: SimulatedSystem, metrics: KeeperMetrics): Job[] {
  const { shape, log } = system;
  const repository = withFaults(proc, 'mysql', system.repositories, ['findByPurchases']);
  const deadLetters = withFaults(proc, 'mysql', system.deadLetters, ['park', 'parkedBatches', 'list', 'close']);
  const store = withFaults(proc, 'redis', system.servers.batches, ['markRecorded', 'park']);
  const messages = signedMessagesOf(proc, system);
  const collectors = ([GROUPS.writer, GROUPS.redriveWriter] as const).map((group) => {
    const { topic, collector } = DEAD_LETTERS[group];
    const dead = sourceOf(proc, system, { topic, group: collector, invisibleMs: shape.invisibleMs });
    const origin = { group, topic: GROUP_TOPICS[group] };
    const source = messages.of(dead, origin);
    return collectDeadLetters({ source, deadLetters, store, repository, log, metrics }, origin);
  });
  return [...collectors, closeRecorded({ deadLetters, store, repository })];
}

/** The consumers of payment deadlines and order events. */
function eventConsumers(proc: SimulatedProcess, system: SimulatedSystem, metrics: KeeperMetrics): Job[] {
  const { shape, log, deadLetters } = system;
  const transitions = withFaults(proc, 'mysql', system.servers.transitions, ['expire']);
  const sender = withFaults(proc, 'redis', system.notifications, ['hasListeners', 'send']);
  const ready = (): Promise<void> => proc.call('mysql', 'probe', async () => undefined, []);
  const messages = signedMessagesOf(proc, system);
  const clocks = clocksOf(proc, system, metrics);
  const groups = [
    {
      group: GROUPS.expirer,
      handle: expireByMessage({ transitions, orders: orderStatesOf(proc, system), clocks, metrics }),
    },
    {
      group: GROUPS.notifier,
      handle: notifyBuyers(notificationsRowsOf(proc, system), sender, NOTHING_STORED, metrics),
    },
  ];
  return groups.map(({ group, handle }) => {
    const way = { group, topic: GROUP_TOPICS[group] };
    const { invisibleMs } = shape;
    const source = messages.of(sourceOf(proc, system, { ...way, invisibleMs }), way);
    return consumeMessages(
      { source, ready, handle, deadLetters, clock: proc.clock, log, metrics },
      { ...way, invisibleMs },
    );
  });
}

function outboxRelays(proc: SimulatedProcess, system: SimulatedSystem, metrics: KeeperMetrics): Job[] {
  const { shape, log } = system;
  const outbox = withFaults(proc, 'mysql', system.servers.outbox, ['lease', 'markDone', 'postpone', 'giveBack']);
  const store = withFaults(proc, 'redis', system.servers.batches, ['release']);
  const memory = system.broker.orderChannels();
  const deadlines = withFaults(proc, 'rocketmq', memory.deadlines, ['publish']);
  const events = withFaults(proc, 'rocketmq', memory.events, ['publish']);
  const ports = { outbox, clock: proc.clock, log, metrics };
  const lease = { max: 64, leaseMs: shape.outboxLeaseMs };
  return [
    ...relayOutbox(
      { ...ports, handle: publishRecorded({ deadlines, events }), group: groupRecorded },
      { ...lease, kind: 'batch_recorded' },
    ),
    ...relayOutbox(
      { ...ports, handle: publishMoved({ events }), group: groupMoved },
      { ...lease, kind: 'orders_moved' },
    ),
    ...relayOutbox({ ...ports, handle: releaseUnits(store, metrics) }, { ...lease, kind: 'release' }),
  ];
}

function metricsOf(system: SimulatedSystem): OrderJobMetrics &
  RecoveryMetrics & {
    jobBegan(): () => void;
    jobRan(job: string, result: 'done' | 'failed'): void;
  } {
  const some = (what: string) => (number: number) => {
    if (number > 0) system.count(`keeper: ${what}`);
  };
  return {
    ...noRecoveryMetrics,
    jobBegan: () => () => undefined,
    jobRan: (_, result) => system.count(`job: ${result}`),
    redriven: some('re-driven'),
    markedLate: some('marked late'),
    released: some('released'),
    expired: some('expired'),
    parked: some('parked'),
    relayed: (kind, result, rows) => {
      if (rows > 0) system.count(`relay: ${kind} ${result}`);
    },
    backlog: () => undefined,
    removed: () => undefined,
    consumed: (_, verdict) => system.count(`consumed: ${verdict}`),
    refundTried: (outcome) => system.count(`refund: ${outcome}`),
    clockAhead: (server, aheadMs) => {
      if (aheadMs !== 0) system.count(`keeper: clock of ${server} differs`);
    },
    attemptResolved: (state) => system.count(`payment attempt: ${state}`),
    notificationsSent: some('buyers notified'),
    couponsIssued: () => undefined,
  };
}
