import type { NewSale, Sale } from '../../../../src/core/sale.js';
import type { Log } from '../../../../src/core/ports/log.js';
import { SaleAdmin } from '../../../../src/sales/sale-admin.js';
import { compareEnded, type CompareEndedPorts } from '../../../../src/sales/schedule/compare-ended.js';
import { planSales, type PlannedSale } from '../../../../src/sales/schedule/plan-sales.js';
import { readinessOf, type Readiness } from '../../../../src/sales/schedule/readiness.js';
import { runSchedule, type RunSchedulePorts } from '../../../../src/sales/schedule/run-schedule.js';
import { ManualClock } from '../../../helpers/memory/manual-clock.js';
import { MemoryRedis } from '../../../helpers/memory/memory-redis.js';
import { MemoryRepositories } from '../../../helpers/memory/memory-repositories.js';
import { MemorySaleSchedule } from '../../../helpers/memory/memory-sale-schedule.js';
import { MemorySaleSnapshotCache } from '../../../helpers/memory/memory-sale-snapshot-cache.js';
import { silentLog } from '../../../helpers/silent-log.js';

export const MINUTE_MS = 60_000;

/** A keeper that runs sales, on stores in memory and one clock. */
export class ScheduleWorld {
  readonly clock = new ManualClock();
  readonly mysql = new MemoryRepositories({ clock: this.clock });
  readonly redis = new MemoryRedis({ clock: this.clock });
  readonly cache = new MemorySaleSnapshotCache(this.clock, { ttlMs: 5000 });
  readonly schedule = new MemorySaleSchedule(this.mysql, this.clock);
  readonly admin = new SaleAdmin({ repository: this.mysql, store: this.redis, cache: this.cache });
  readonly logged: string[] = [];
  topics: string | null = null;
  notReady: readonly (readonly [string, number])[] = [];
  outcome: Awaited<ReturnType<CompareEndedPorts['compare']>> = 'match';
  compared: string[] = [];
  /** Warnings of comparisons. */
  readonly warned: string[] = [];

  readonly readiness = (sale: Sale): Promise<Readiness> =>
    readinessOf(sale, this.redis, this.cache, async () => this.topics);

  /** Creates a sale that opens in an hour, for an hour. The keeper warms it ten minutes before. */
  async create(parts: Partial<NewSale> = {}): Promise<Sale> {
    const nowMs = this.clock.nowMs();
    const made = await this.admin.create(
      {
        sku: `sku-${Math.random()}`,
        title: 'A thing',
        priceCents: 100,
        currency: 'EUR',
        stock: 10,
        limitPerBuyer: 2,
        buckets: 1,
        opensAtMs: nowMs + 60 * MINUTE_MS,
        closesAtMs: nowMs + 120 * MINUTE_MS,
        warmBeforeMs: 10 * MINUTE_MS,
        paymentWindowMs: null,
        ...parts,
      },
      'ann',
    );
    if (made.outcome !== 'created') throw new Error('overlaps');
    return made.sale;
  }

  /** Runs a keeper once. */
  run(parts: Partial<RunSchedulePorts> = {}): Promise<unknown> {
    return this.keeper(parts).runOnce();
  }

  /** @param parts ports that this keeper replaces */
  keeper(parts: Partial<RunSchedulePorts> = {}) {
    const note: Log['warn'] = (fields, text) => void this.logged.push(`${text} ${JSON.stringify(fields)}`);
    return runSchedule(
      {
        schedule: this.schedule,
        sales: this.admin,
        readiness: this.readiness,
        clock: this.clock,
        metrics: { notReady: (sales) => void (this.notReady = sales) },
        log: { ...silentLog, info: note, warn: note },
        ...parts,
      },
      { everyMs: 2000 },
    );
  }

  /** @param compare by default records the sale and returns `outcome` */
  compare(
    compare: CompareEndedPorts['compare'] = async (saleId) => {
      this.compared.push(saleId);
      return this.outcome;
    },
  ): Promise<unknown> {
    return compareEnded(
      { schedule: this.schedule, compare, log: { ...silentLog, warn: (_fields, text) => void this.warned.push(text) } },
      { afterMs: 2 * MINUTE_MS },
    ).runOnce();
  }

  plan(): Promise<PlannedSale[]> {
    const { schedule, readiness, clock } = this;
    return planSales({ schedule, readiness, nowMs: () => clock.nowMs() }, 7 * 24 * 60 * MINUTE_MS);
  }

  state({ saleId }: Sale): string | undefined {
    return this.mysql.saleOf(saleId)?.state;
  }

  async inRedis({ saleId }: Sale): Promise<string | undefined> {
    return (await this.redis.readSale({ saleId, bucket: 0 }))?.state;
  }

  /** Returns `actor action` of every audit entry about a sale. */
  audit({ saleId }: Sale): string[] {
    return this.mysql.audited
      .filter(({ subject }) => subject === `sale:${saleId}`)
      .map(({ actor, action }) => `${actor} ${action}`);
  }
}
