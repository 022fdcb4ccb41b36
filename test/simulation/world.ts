import { OperationalError } from '../../src/core/errors.js';
import { SalesNotCompared } from '../../src/operate/reconcile/jobs.js';
import { purchaseKey } from '../../src/core/purchase.js';
import type { Sale } from '../../src/core/sale.js';
import type { Order } from '../../src/core/order.js';
import { openTransfers } from '../../src/core/bucket.js';
import { DEAD_LETTERS, GROUPS, GROUP_TOPICS } from '../../src/core/topics.js';
import type { Log } from '../../src/core/ports/log.js';
import type { Clock } from '../../src/core/ports/clock.js';
import { MemoryRepositories } from '../helpers/memory/memory-repositories.js';
import { MemoryBroker } from '../helpers/memory/memory-broker.js';
import { MemoryCompensationRepository } from '../helpers/memory/memory-compensation-repository.js';
import { MemoryDeadLetters } from '../helpers/memory/memory-dead-letters.js';
import { MemoryRedis } from '../helpers/memory/memory-redis.js';
import { MemoryOrderTransitions } from '../helpers/memory/memory-order-transitions.js';
import type { MemoryPurchaseNotifications } from '../helpers/memory/memory-purchase-notifications.js';
import { MemoryReconcileRuns } from '../helpers/memory/memory-reconcile-runs.js';
import { MemoryPaymentAttempts } from '../helpers/memory/memory-payment-attempts.js';
import { MemoryRefundRepository } from '../helpers/memory/memory-refund-repository.js';
import { MemoryRepairStore } from '../helpers/memory/memory-repair-store.js';
import { MemorySaleSnapshotCache } from '../helpers/memory/memory-sale-snapshot-cache.js';
import { MemoryTransferStore } from '../helpers/memory/memory-transfer-store.js';
import { MemoryWorkerSlots } from '../helpers/memory/memory-worker-slots.js';
import { Faults } from './engine/faults.js';
import { describe } from './engine/simulated-process.js';
import { Rng } from './engine/rng.js';
import { Scheduler, START_MS, type Timer } from './engine/scheduler.js';
import { Api } from './programs/api.js';
import { Buyers } from './programs/buyer.js';
import { CheckBacks } from './programs/check-backs.js';
import { Intruder } from './programs/intruder.js';
import { Keeper } from './programs/keeper.js';
import { Operator } from './programs/operator.js';
import { Till } from './programs/till.js';
import { Worker } from './programs/worker.js';
import { InvariantMonitor } from './invariant-monitor.js';
import { drawShape, losesData, SALE_ID, type RestartKind, type Shape } from './shape.js';
import type { RedisHistory, Servers, SimulatedSystem } from './simulated-system.js';

export interface Violation {
  readonly code: string;
  readonly what: string;
}

/** A receive that waits for a message of its group. */
interface Waiter {
  readonly topic: string;
  readonly group: string;
  readonly timer: Timer;
  readonly resolve: () => void;
}

/** Every n-th run has an intruder who sends a few forged messages. Their dead letters lengthen a run. */
const INTRUDER_EVERY = 16;
/** Every n-th run has a purchase with which the scripts of Redis fail. */
const POISON_EVERY = 8;
/** In every n-th run, operators refund orders. */
const TILL_EVERY = 4;
/** In every n-th run an operator changes the clock of MySQL and corrects it again. */
const CLOCK_JUMP_EVERY = 8;
const CLOCK_JUMPS_MINUTES = [20, -20, 50, 120, -120] as const;
/** Share of the calls after which Redis restarts, in runs that have restarts. */
const RESTART_RATE = 0.6;
const ARRIVAL_WAIT_MS = 8_000;
const REST_CHECK_EVERY_MS = 400;
/** Maximum time for recovery, with several retries of a minute, invisible times and leases. */
const HEAL_MAX_MS = 30 * 60_000;
/** Groups that must have no message left at rest. */
const DRAINED_GROUPS = [GROUPS.writer, GROUPS.redriveWriter].flatMap((group) => [
  { topic: GROUP_TOPICS[group] as string, group: group as string },
  { topic: DEAD_LETTERS[group].topic as string, group: DEAD_LETTERS[group].collector as string },
]);

/** Does one run: servers in memory, programs around them and faults between them, all from one seed. */
export class World implements SimulatedSystem {
  readonly rng: Rng;
  readonly scheduler: Scheduler;
  readonly shape: Shape;
  readonly faults: Faults;
  readonly redis: MemoryRedis;
  readonly repositories: MemoryRepositories;
  readonly transitions: MemoryOrderTransitions;
  readonly deadLetters: MemoryDeadLetters;
  readonly refunds: MemoryRefundRepository;
  readonly attempts: MemoryPaymentAttempts;
  readonly notifications: MemoryPurchaseNotifications;
  readonly compensations: MemoryCompensationRepository;
  readonly runs: MemoryReconcileRuns;
  readonly slots: MemoryWorkerSlots;
  readonly cache: MemorySaleSnapshotCache;
  readonly broker: MemoryBroker;
  readonly servers: Servers;
  readonly late = { requests: 0 };
  readonly past: RedisHistory = { restarts: 0, repairs: 0, lostWrites: 0, lostAtMs: -Infinity };
  readonly counts = new Map<string, number>();
  readonly lines: string[] = [];
  readonly trace: SimulatedSystem['trace'];
  violation: Violation | null = null;
  #over = false;
  #apis: readonly Api[] = [];
  #buyers: Buyers | null = null;
  #monitor: InvariantMonitor | null = null;
  #checkBacks: CheckBacks | null = null;
  #intruder: Intruder | null = null;
  #till: Till | null = null;
  readonly #seed: number;
  /** How far the clock of MySQL is ahead of the true time. */
  #mysqlAheadMs = 0;
  #waiting: Waiter[] = [];

  constructor(seed: number, traced: boolean) {
    this.#seed = seed;
    this.rng = new Rng(seed);
    this.scheduler = new Scheduler(this.rng);
    this.shape = drawShape(this.rng);
    this.faults = new Faults(this.rng, START_MS, this.shape.chaosMs, losesData(this.shape));
    this.trace = traced ? (who, line) => this.#trace(who, line) : null;
    const clock: Clock = {
      nowMs: () => this.scheduler.nowMs,
      monotonicMs: () => this.scheduler.nowMs,
      sleep: (ms) => new Promise((resolve) => void this.scheduler.after(ms, resolve)),
    };
    this.redis = new MemoryRedis({ clock });
    this.notifications = this.redis.notifications;
    const mysqlClock: Clock = { ...clock, nowMs: () => this.scheduler.nowMs + this.#mysqlAheadMs };
    this.repositories = new MemoryRepositories({ clock: mysqlClock });
    this.deadLetters = new MemoryDeadLetters(mysqlClock);
    this.slots = new MemoryWorkerSlots(clock);
    this.cache = new MemorySaleSnapshotCache(clock, { ttlMs: 2_000 });
    const { checkAfterMs, retriesMax } = this.shape;
    const writers: readonly string[] = [GROUPS.writer, GROUPS.redriveWriter];
    this.broker = new MemoryBroker({
      clock,
      transactionTimeOutMs: checkAfterMs,
      retryMaxTimes: (group) => (writers.includes(group) ? retriesMax : 10_000),
    });
    this.transitions = new MemoryOrderTransitions(this.repositories, clock);
    this.compensations = new MemoryCompensationRepository(mysqlClock);
    this.runs = new MemoryReconcileRuns(mysqlClock);
    this.refunds = new MemoryRefundRepository(this.transitions, mysqlClock);
    this.attempts = new MemoryPaymentAttempts(mysqlClock, this.repositories);
    const { redis, repositories, transitions } = this;
    this.servers = {
      stock: redis,
      transfers: new MemoryTransferStore(redis),
      batches: redis,
      repair: new MemoryRepairStore(redis),
      orders: repositories,
      outbox: repositories.outbox,
      transitions,
    };
  }

  /** Warms and opens the sale, and starts the programs. */
  async open(): Promise<void> {
    const { sale, apis, workers, keepers, chaosMs } = this.shape;
    this.trace?.('world', describe({ ...this.shape, sale: undefined }).slice(0, -1));
    if (this.shape.restarts?.kind === 'tail') this.redis.keepHistory();
    this.repositories.putSale(sale);
    await this.redis.warm(sale);
    await this.redis.setState(sale, 'open');
    const monitor = new InvariantMonitor(this);
    this.#monitor = monitor;
    this.#checkBacks = new CheckBacks({
      system: this,
      apis: () => this.#apis,
      onAnswer: (answer, batch) => monitor.checkEnd(answer, batch),
      onEnd: () => this.#wakeReceivers(),
    });
    this.#apis = Array.from({ length: apis }, (_, index) => new Api(this, `api-${index + 1}`));
    for (let worker = 1; worker <= workers; worker++) new Worker(this, `worker-${worker}`);
    for (let keeper = 1; keeper <= keepers; keeper++) new Keeper(this, `keeper-${keeper}`);
    if (keepers > 1) this.count('process: two keepers');
    new Operator(this);
    if (this.#seed % INTRUDER_EVERY === 0) this.#intruder = new Intruder(this, new Rng(-this.#seed));
    if (this.#seed % TILL_EVERY === 1) this.#till = new Till(this, new Rng(-this.#seed - 2));
    if (this.#seed % POISON_EVERY === 0) this.#poison(new Rng(-this.#seed - 1));
    this.#buyers = new Buyers(this, this.#apis, monitor);
    if (this.#seed % CLOCK_JUMP_EVERY === 3) this.#jumpClock(new Rng(-this.#seed));
    this.scheduler.after(chaosMs, () => this.#heal());
  }

  get over(): boolean {
    return this.#over || this.violation !== null;
  }

  acted(call: string, args: readonly unknown[], value: unknown): void {
    this.#monitor?.afterCall(call, args, value);
    const { restarts } = this.shape;
    if (restarts?.after === call && !this.faults.healed && this.past.restarts < restarts.times) {
      if (this.rng.chance(RESTART_RATE)) this.#restart(restarts.kind);
    }
    if (call === 'transferOut' || call === 'transferIn' || call === 'endTransfer')
      this.count(`${call}: ${wordOf(value)}`);
    if (call === 'deduct' || call === 'resolve' || call === 'reacquire') this.count(`${call}: ${wordOf(value)}`);
    if (call === 'commit' || call === 'publish') this.#wakeReceivers();
  }

  count(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1);
  }

  fail(code: string, what: string): void {
    this.violation ??= { code, what };
    this.trace?.('world', `BROKEN ${code}: ${what}`);
  }

  readonly log: Log = {
    debug: () => undefined,
    info: () => undefined,
    warn: (fields) => this.#checkError(fields),
    error: (fields, message) => {
      this.#checkError(fields);
      this.count(`log: ${message}`);
    },
  };

  arrival(topic: string, group: string): Promise<void> {
    const { nowMs } = this.scheduler;
    const waitMs = Math.min(ARRIVAL_WAIT_MS, (this.broker.nextMs(topic, group) ?? Infinity) - nowMs);
    if (waitMs <= 0) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = this.scheduler.after(waitMs, resolve);
      this.#waiting.push({ topic, group, timer, resolve });
    });
  }

  /** Returns the reason why the run is not at rest, or null. */
  whatIsLeft(): string | null {
    if (!this.faults.healed) return 'faults';
    if (this.late.requests > 0) return 'requests are under way';
    if ((this.#buyers?.busy ?? 0) > 0) return 'buyers wait';
    for (let bucket = 0; bucket < this.#sale.buckets; bucket++) {
      if (this.redis.bucket({ saleId: SALE_ID, bucket }).pending.size > 0) return 'batches are pending';
    }
    if (!this.#isLoadedEverywhere()) return 'the sale is not loaded in every bucket, in its epoch and state';
    if (this.#hasOpenTransfers()) return 'units are in transit';
    if (this.repositories.outboxRows.some(({ doneAtMs }) => doneAtMs === null)) return 'outbox rows are not done';
    const nowMs = this.scheduler.nowMs;
    if (this.repositories.allOrders.some((order) => isOverdue(order, nowMs))) return 'orders are overdue';
    for (const { paymentId, refund } of this.transitions.payments.values()) {
      if (refund !== null && this.refunds.tries(paymentId).state === 'due') return 'money is owed back';
    }
    if ([...this.attempts.rows.values()].some(({ state }) => state === 'open')) return 'payment attempts are open';
    if (this.#till?.isDue === true) return 'refunds are due';
    if (this.compensations.jobs.some(({ state }) => state === 'pending')) return 'compensations are pending';
    if (this.deadLetters.deadLetters.some(({ state }) => state === 'parked')) return 'dead letters are parked';
    if (this.broker.openHalves.some((body) => this.#checkBacks?.hasGivenUp(body) !== true))
      return 'half messages are open';
    for (const { topic, group } of DRAINED_GROUPS) {
      if (this.broker.unfinished(topic, group) > 0) return `messages of ${group} are left`;
    }
    return null;
  }

  /** @param rng separate, so that runs without a poison purchase stay the same */
  #poison(rng: Rng): void {
    this.redis.poisoned.add(purchaseKey({ userId: `u${rng.range(1, this.shape.buyers)}`, requestId: 'k1' }));
  }

  /** Restarts Redis at once. Calls under way reach the new server. */
  #restart(kind: RestartKind): void {
    const lose = kind === 'tail' ? this.rng.range(1, 12) : 0;
    const lost = this.redis.restart({ lose, empty: kind === 'empty' });
    this.past.restarts++;
    this.past.repairs++;
    this.past.lostWrites += kind === 'empty' ? 1 : lost;
    if (kind === 'empty' || lost > 0) this.past.lostAtMs = this.scheduler.nowMs;
    this.count(`redis: restarted ${kind}`);
    this.trace?.('world', `Redis restarts ${kind}${lost > 0 ? `, the last ${lost} writes are gone` : ''}`);
  }

  /** Changes the clock at the start or later. The slots of order ids stay on the true time. */
  #jumpClock(rng: Rng): void {
    const jumpMs = rng.pick(CLOCK_JUMPS_MINUTES) * 60_000;
    this.scheduler.after(rng.pick([0, rng.range(1, this.shape.chaosMs)]), () => {
      if (!this.faults.healed) this.#setMysqlClock(jumpMs);
    });
    this.scheduler.after(rng.range(1, this.shape.chaosMs), () => this.#setMysqlClock(0));
  }

  #setMysqlClock(aheadMs: number): void {
    this.#mysqlAheadMs = aheadMs;
    this.count(`mysql: its clock is ${aheadMs === 0 ? 'right' : aheadMs > 0 ? 'ahead' : 'behind'}`);
    this.trace?.('world', `MySQL's clock is ${aheadMs} ms ahead`);
  }

  #heal(): void {
    this.faults.heal();
    if (this.#mysqlAheadMs !== 0) this.#setMysqlClock(0);
    this.trace?.('world', 'no more faults');
    const untilMs = this.scheduler.nowMs + HEAL_MAX_MS;
    const check = (): void => {
      // A closed sale is rebuilt only when a buyer asks for a purchase.
      if (!this.#isLoadedEverywhere() && this.#sale.state === 'closed') void this.redis.askForRepair(SALE_ID);
      const left = this.whatIsLeft();
      if (left === null) return void this.#end();
      if (this.scheduler.nowMs >= untilMs) this.fail('REST', `after ${HEAL_MAX_MS / 60_000} minutes ${left}`);
      this.scheduler.after(REST_CHECK_EVERY_MS, check);
    };
    check();
  }

  /** Asserts that every bucket is loaded on the current server, in the epoch and state of MySQL. */
  #isLoadedEverywhere(): boolean {
    const { saleId, buckets, epoch, state } = this.#sale;
    for (let bucket = 0; bucket < buckets; bucket++) {
      const { sale } = this.redis.bucket({ saleId, bucket });
      if (!this.redis.isSure(sale) || sale.epoch !== epoch || sale.state !== state) return false;
    }
    return true;
  }

  /** The current state in MySQL. */
  get #sale(): Sale {
    return this.repositories.saleOf(SALE_ID) as Sale;
  }

  #hasOpenTransfers(): boolean {
    const { saleId, buckets } = this.#sale;
    const all = Array.from({ length: buckets }, (_, bucket) => this.redis.bucket({ saleId, bucket }).transfers());
    return openTransfers(all).length > 0;
  }

  async #end(): Promise<void> {
    this.#intruder?.check();
    this.#till?.check();
    await this.#monitor?.checkAtRest();
    for (const { state } of this.repositories.allOrders) this.count(`order: ${state}`);
    this.#over = true;
  }

  /** Wakes every waiting receive whose group has a message now. */
  #wakeReceivers(): void {
    this.#waiting = this.#waiting.filter(({ topic, group, timer, resolve }) => {
      if (timer.atMs <= this.scheduler.nowMs) return false; // its wait is over
      if ((this.broker.nextMs(topic, group) ?? Infinity) > this.scheduler.nowMs) return true;
      timer.cancelled = true;
      resolve();
      return false;
    });
  }

  #checkError(fields: object): void {
    const error = 'err' in fields ? fields.err : null;
    if (error instanceof OperationalError || error instanceof SalesNotCompared) return;
    if (error instanceof Error) this.fail('BUG', error.stack ?? error.message);
  }

  #trace(who: string, line: string): void {
    const seconds = ((this.scheduler.nowMs - START_MS) / 1000).toFixed(3);
    this.lines.push(`${seconds.padStart(9)} s  ${who.padEnd(9)} ${line}`);
  }
}

const isOverdue = ({ state, expiresAtMs }: Order, nowMs: number): boolean =>
  state === 'pending_payment' && expiresAtMs !== null && expiresAtMs <= nowMs;

const wordOf = (value: unknown): string =>
  typeof value === 'string' ? value : ((value as { outcome?: string } | undefined)?.outcome ?? 'done');
