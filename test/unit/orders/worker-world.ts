import type { Batch } from '../../../src/core/batch.js';
import { OperationalError } from '../../../src/core/errors.js';
import type { Sale } from '../../../src/core/sale.js';
import { GROUPS, TOPICS, WRITER_RETRIES_MAX } from '../../../src/core/topics.js';
import { createOrderIdMinter, type OrderIdMinter } from '../../../src/orders/order-id-minter.js';
import type { DeliveryVerdict, WorkerMetrics } from '../../../src/orders/metrics.js';
import { MysqlOutage } from '../../../src/orders/mysql-outage.js';
import { WorkerLoop, type WorkerLoopOptions } from '../../../src/orders/worker-loop.js';
import type { Clock } from '../../../src/core/ports/clock.js';
import type { Log } from '../../../src/core/ports/log.js';
import type { DeliverySource } from '../../../src/core/ports/channels.js';
import { silentLog } from '../../helpers/silent-log.js';
import type { OrderRepository, WritePlan } from '../../../src/core/ports/order-repository.js';
import { MemoryRepositories } from '../../helpers/memory/memory-repositories.js';
import { MemoryBroker } from '../../helpers/memory/memory-broker.js';
import { MemoryDeadLetters } from '../../helpers/memory/memory-dead-letters.js';
import { MemoryRedis } from '../../helpers/memory/memory-redis.js';
import { MemoryTracing } from '../../helpers/memory/memory-tracing.js';
import { MemoryWorkerSlots } from '../../helpers/memory/memory-worker-slots.js';
import { saleOf } from '../../helpers/sales.js';

/** Longer than any test, except the test that lets the lease end, ms. */
export const LEASE_MS = 3 * 60 * 60 * 1000;

/** Time on the fake timers of a test. */
export const timerClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const done = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', done);
        resolve();
      };
      const timer = setTimeout(done, ms);
      signal?.addEventListener('abort', done);
    }),
};

/** The repository with a replaced `write`, which may call the original. */
export const withWrite = (mysql: MemoryRepositories, write: OrderRepository['write']): OrderRepository => ({
  termsOf: (saleIds) => mysql.termsOf(saleIds),
  findByPurchases: (saleId, purchases) => mysql.findByPurchases(saleId, purchases),
  writtenBatches: (batchIds) => mysql.writtenBatches(batchIds),
  liveBuyers: (saleId, userIds) => mysql.liveBuyers(saleId, userIds),
  findOrder: (orderId) => mysql.findOrder(orderId),
  countCancelled: (saleId, userId) => mysql.countCancelled(saleId, userId),
  expiredOf: (saleId, userIds) => mysql.expiredOf(saleId, userIds),
  write,
});

export class WorkerWorld {
  readonly broker = new MemoryBroker({ clock: timerClock });
  readonly mysql = new MemoryRepositories({ clock: timerClock });
  readonly store = new MemoryRedis({ clock: timerClock });
  readonly deadLetters = new MemoryDeadLetters(timerClock);
  readonly slots = new MemoryWorkerSlots(timerClock);
  readonly minter: OrderIdMinter = createOrderIdMinter(
    { slots: this.slots, clock: timerClock, log: silentLog },
    { owner: 'worker', leaseMs: LEASE_MS },
  );
  readonly tracing = new MemoryTracing();
  readonly verdicts: DeliveryVerdict[] = [];
  readonly bugs: unknown[] = [];
  /** Purchases and time of every attempted write. */
  readonly writes: { readonly atMs: number; readonly users: string[] }[] = [];
  /** Error of every write while it is set. */
  writeFails: OperationalError | null = null;
  /** While true, the probe fails too. */
  probeFails = false;
  receives = 0;
  /** Attempts of every received message. */
  readonly attempts: number[] = [];
  /** Ages of batches at their arrival, and sizes and ages at the write. */
  readonly agesMs = { received: [] as number[], recorded: [] as [size: number, ageMs: number][] };
  checkedBack = 0;
  /** Warnings in the log. */
  readonly warnings: object[] = [];
  readonly log: Log = { ...silentLog, warn: (fields) => void this.warnings.push(fields) };
  aside = 0;
  readonly outage: MysqlOutage;
  readonly repository: OrderRepository;

  constructor() {
    const { mysql } = this;
    this.outage = new MysqlOutage(
      { probe: () => this.#probe(), clock: timerClock, metrics: this.metrics, log: silentLog },
      { probeEveryMs: 1000 },
    );
    this.repository = withWrite(mysql, (plan) => this.#write(plan));
  }

  readonly metrics: WorkerMetrics = {
    received: () => undefined,
    checkedBack: () => void this.checkedBack++,
    delivered: (verdict) => void this.verdicts.push(verdict),
    retried: () => undefined,
    batchesWritten: () => undefined,
    batchReceived: (ageMs) => void this.agesMs.received.push(ageMs),
    recorded: (size, ageMs) => void this.agesMs.recorded.push([size, ageMs]),
    markedRecorded: () => undefined,
    mysqlOutage: () => undefined,
    setAside: (_group, deliveries) => void (this.aside = deliveries),
  };

  /** Opens a sale in MySQL and Redis. */
  async openSale(parts: Partial<Sale> = {}): Promise<Sale> {
    const sale = saleOf({ stock: 1000, ...parts }, timerClock.nowMs());
    this.mysql.putSale(sale);
    await this.store.warm(sale);
    await this.store.setState(sale, 'open');
    return sale;
  }

  /** Holds the units of a batch and publishes it, as an api process does. */
  async place(batch: Batch): Promise<void> {
    await this.store.deduct(batch);
    const { saleId, batchId, body } = batch;
    this.broker.publishRaw(TOPICS.purchase, body, { topic: TOPICS.purchase, saleId, batchId });
  }

  /** @param awaitMs how long an empty receive takes */
  worker(parts: Partial<WorkerLoopOptions> = {}, awaitMs = 5000): WorkerLoop {
    const inner = this.broker.source(TOPICS.purchase, GROUPS.writer, 30_000, awaitMs);
    const source: DeliverySource = {
      receive: async (max) => {
        this.receives++;
        const deliveries = await inner.receive(max);
        this.attempts.push(...deliveries.map(({ attempt }) => attempt));
        return deliveries;
      },
    };
    const { repository, store, deadLetters, minter, outage, tracing, metrics } = this;
    const onBug = (error: unknown): void => void this.bugs.push(error);
    return new WorkerLoop(
      {
        source,
        repository,
        store,
        deadLetters,
        minter,
        outage,
        tracing,
        metrics,
        clock: timerClock,
        log: this.log,
        onBug,
      },
      {
        loops: 2,
        receiveMax: 16,
        paymentWindowMs: 900_000,
        group: GROUPS.writer,
        topic: TOPICS.purchase,
        ...parts,
      },
    );
  }

  /** Messages that are neither acked nor dead. */
  get unfinished(): number {
    return this.broker.unfinished(TOPICS.purchase, GROUPS.writer);
  }

  get deadLetterBodies(): readonly string[] {
    return this.broker.published(`%DLQ%${GROUPS.writer}`);
  }

  /** The highest attempt. The broker gives up a message after a limited number of attempts. */
  get worstAttempt(): number {
    return Math.max(0, ...this.attempts);
  }

  async #probe(): Promise<void> {
    if (this.probeFails) throw mysqlDown('probe');
  }

  #write(plan: WritePlan): ReturnType<OrderRepository['write']> {
    this.writes.push({ atMs: timerClock.nowMs(), users: plan.orders.map(({ purchase }) => purchase.userId) });
    return this.writeFails === null ? this.mysql.write(plan) : Promise.reject(this.writeFails);
  }
}

export const mysqlDown = (what: string, retryable = true): OperationalError =>
  new OperationalError('mysql', `${what}, ordered by the test`, { retryable });

export const ATTEMPTS_BEFORE_DEAD = WRITER_RETRIES_MAX + 1;
