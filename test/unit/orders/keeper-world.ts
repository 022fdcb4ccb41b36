import type { Batch } from '../../../src/core/batch.js';
import type { Sale } from '../../../src/core/sale.js';
import type { Log } from '../../../src/core/ports/log.js';
import type { OutboxBacklog } from '../../../src/core/ports/outbox.js';
import { ClockWatch } from '../../../src/orders/clock-watch.js';
import type { OrderJobMetrics } from '../../../src/orders/metrics.js';
import type { RecoveryMetrics } from '../../../src/recovery/metrics.js';
import { ManualClock } from '../../helpers/memory/manual-clock.js';
import { MemoryRepositories } from '../../helpers/memory/memory-repositories.js';
import { MemoryBroker } from '../../helpers/memory/memory-broker.js';
import { MemoryDeadLetters } from '../../helpers/memory/memory-dead-letters.js';
import { MemoryOrderTransitions } from '../../helpers/memory/memory-order-transitions.js';
import { MemoryRedis } from '../../helpers/memory/memory-redis.js';
import { batchOf, purchasesOf, saleOf } from '../../helpers/sales.js';
import { noRecoveryMetrics } from '../../helpers/no-metrics.js';

export class KeeperWorld {
  readonly clock = new ManualClock();
  readonly store = new MemoryRedis({ clock: this.clock });
  readonly broker = new MemoryBroker({ clock: this.clock });
  readonly mysql = new MemoryRepositories({ clock: this.clock });
  readonly transitions = new MemoryOrderTransitions(this.mysql);
  readonly deadLetters = new MemoryDeadLetters(this.clock);
  readonly counts = {
    redriven: 0,
    markedLate: 0,
    released: 0,
    parked: 0,
    published: 0,
    retried: 0,
    removed: 0,
    expired: 0,
    coupons: 0,
    notified: 0,
  };
  readonly consumed: [string, string][] = [];
  readonly backlogs: OutboxBacklog[] = [];
  readonly runs: [string, string][] = [];
  pending: [number, number] | null = null;
  readonly overdue: Record<string, [number, number]> = {};
  /** How far each server's clock is ahead of ours, ms. */
  readonly ahead = { mysql: 0, redis: 0 };
  readonly refundTries: string[] = [];
  readonly errors: string[] = [];
  readonly warnings: string[] = [];
  #orders = 0;

  readonly metrics: OrderJobMetrics &
    RecoveryMetrics & { jobRan(job: string, result: 'done' | 'failed'): void; jobBegan(): () => void } = {
    ...noRecoveryMetrics,
    jobBegan: () => () => undefined,
    jobRan: (job, result) => this.runs.push([job, result]),
    redriven: (batches) => (this.counts.redriven += batches),
    markedLate: (batches) => (this.counts.markedLate += batches),
    released: (requests) => (this.counts.released += requests),
    expired: (orders) => (this.counts.expired += orders),
    overdue: (state, count, oldestMs) => (this.overdue[state] = [count, oldestMs]),
    parked: (messages) => (this.counts.parked += messages),
    pending: (batches, oldestMs) => (this.pending = [batches, oldestMs]),
    relayed: (_, result, rows) => (this.counts[result] += rows),
    backlog: (backlog) => this.backlogs.push(backlog),
    removed: (rows) => (this.counts.removed += rows),
    consumed: (group, verdict) => this.consumed.push([group, verdict]),
    refundTried: (outcome) => this.refundTries.push(outcome),
    clockAhead: (server, aheadMs) => (this.aheadSeen[server] = aheadMs),
    attemptResolved: () => undefined,
    notificationsSent: (orders) => (this.counts.notified += orders),
    couponsIssued: (coupons) => (this.counts.coupons += coupons),
  };

  readonly aheadSeen: Record<string, number> = {};
  readonly clocks = new ClockWatch({
    servers: {
      mysql: async () => this.clock.nowMs() + this.ahead.mysql,
      redis: () => [Promise.resolve(this.clock.nowMs() + this.ahead.redis)],
    },
    clock: this.clock,
    metrics: this.metrics,
  });

  readonly log: Log = {
    debug: () => undefined,
    info: () => undefined,
    warn: (_, message) => this.warnings.push(message),
    error: (_, message) => this.errors.push(message),
  };

  async openSale(parts: Partial<Sale> = {}): Promise<Sale> {
    const sale = saleOf({ stock: 1000, limitPerBuyer: 10, ...parts }, this.clock.nowMs());
    this.mysql.putSale(sale);
    await this.store.warm(sale);
    await this.store.setState(sale, 'open');
    return sale;
  }

  async deducted(sale: Sale, texts: readonly string[], bucket = 0): Promise<Batch> {
    const batch = batchOf({ ...sale, bucket }, purchasesOf(...texts));
    const verdict = await this.store.deduct(batch);
    if (verdict.outcome !== 'deducted') throw new Error(`deduct: ${verdict.outcome}`);
    return batch;
  }

  /** Writes the rows of a batch, as a worker does before it marks the batch. Users in `failed` get a failed row. */
  async recorded(batch: Batch, failed: readonly string[] = []): Promise<string[]> {
    const terms = await this.mysql.termsOf([batch.saleId]);
    const orders = batch.purchases.map((purchase) => ({
      orderId: String(++this.#orders),
      batch,
      purchase,
      failure: failed.includes(purchase.userId) ? ('limit_reached' as const) : null,
    }));
    const plan = { terms, orders, releases: [], oneByOne: new Set<string>(), paymentWindowMs: 900_000 };
    const { outcome } = await this.mysql.write(plan);
    if (outcome !== 'written') throw new Error(`write: ${outcome}`);
    return orders.map(({ orderId }) => orderId);
  }
}
