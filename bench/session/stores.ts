import { openSales } from '../../src/operate/sales/services.js';
import { loadConfig, type Environment } from '../../src/core/config/load.js';
import type { Sale } from '../../src/core/sale.js';
import { openMysqlPool, type MysqlPool } from '../../src/mysql/pool.js';
import { createOrderAudit } from '../../test/invariants/order-audit.js';
import { withConnections } from '../../src/process/connections.js';
import { systemClock as clock } from '../../src/process/system-clock.js';
import { createLog } from '../../src/process/telemetry.js';
import { connectRedis, type RedisConnection } from '../../src/redis/connection.js';
import { checkSale, waitUntilAtRest, type OpLog, type SaleCheck } from '../../test/invariants/check-sale.js';
import { createBucketAudit } from '../../test/invariants/redis-snapshot.js';
import { BenchError } from '../bench-error.js';

const DAY_MS = 86_400_000;
/** Time limit: reading half a million rows for the check is one statement. */
const QUERY_TIMEOUT_MS = 120_000;
const REST_TIMEOUT_MS = 120_000;
const LANDED_POLL_MS = 5;
/** Missing orders count as lost if no new order appears for this time. */
const LANDED_STALL_MS = 90_000;
/** Tables that grow with sales and their orders. */
const TABLES_OF_SALES = [
  ...['orders', 'order_ranges', 'order_metadata', 'order_traces', 'payments', 'payment_attempts', 'refunds', 'coupons'],
  ...['outbox', 'dead_letters', 'compensation_jobs', 'reconcile_runs', 'sale_edits', 'audit_log', 'reconcile_leases'],
  ...['orders_archive', 'order_metadata_archive', 'order_traces_archive', 'payments_archive', 'coupons_archive'],
];
const REWRITE_POLL_MS = 100;
const REWRITE_WAIT_MS = 60_000;

/** Opens sales in MySQL and Redis, waits for orders, compares and empties both stores. */
export class Stores {
  readonly mysql: MysqlPool;
  readonly redis: RedisConnection;
  readonly #env: Environment;

  private constructor(env: Environment, mysql: MysqlPool, redis: RedisConnection) {
    this.#env = env;
    this.mysql = mysql;
    this.redis = redis;
  }

  static async open(env: Environment): Promise<Stores> {
    const { mysql, redis } = loadConfig(['mysql', 'redis'], env);
    const pool = openMysqlPool({ ...mysql, poolMax: 8, queryTimeoutMs: QUERY_TIMEOUT_MS });
    const connection = await connectRedis({ ...redis, replyTimeoutMs: 30_000 }, createLog('bench', 'error'));
    return new Stores(env, pool, connection);
  }

  /** Opens a sale with one unit per buyer, open from now on. */
  async openSale(title: string, stock: number, buckets = 1): Promise<Sale> {
    const config = loadConfig(['mysql', 'redis'], this.#env);
    const window = { opensAtMs: Date.now() - 1000, closesAtMs: Date.now() + DAY_MS };
    const sale = {
      sku: `bench-${title.replaceAll(' ', '-')}`,
      title,
      priceCents: 1999,
      currency: 'EUR',
      warmBeforeMs: null,
      paymentWindowMs: null,
      stock,
      limitPerBuyer: 1,
      buckets,
      ...window,
    };
    return withConnections(config, createLog('bench', 'error'), async (connections) => {
      const admin = await openSales(connections);
      const made = await admin.create(sale, 'bench');
      if (made.outcome !== 'created') throw new BenchError(`the sale ${made.outcome}`);
      const { saleId } = made.sale;
      await admin.warm(saleId, 'bench');
      const opened = await admin.open(saleId, 'bench');
      if (opened.outcome !== 'done') throw new BenchError(`sale ${saleId} could not be opened: ${opened.outcome}`);
      return opened.sale;
    });
  }

  /**
   * Waits until `accepted` orders of the sale are committed, or until no more appear.
   * @returns Unix ms when the last one was seen (no later than 5 ms after its commit)
   */
  async waitUntilLanded(saleId: string, accepted: number, signal: AbortSignal): Promise<number> {
    let landed = -1;
    let changedAtMs = Date.now();
    for (;;) {
      const [row] = await this.mysql.query<{ sold: number }>('SELECT sold FROM sales WHERE id = ?', [saleId]);
      const nowMs = Date.now();
      if ((row?.sold ?? 0) !== landed) [landed, changedAtMs] = [row?.sold ?? 0, nowMs];
      if (landed >= accepted || nowMs - changedAtMs > LANDED_STALL_MS) return changedAtMs;
      signal.throwIfAborted();
      await clock.sleep(LANDED_POLL_MS, signal);
    }
  }

  /** @throws BenchError if something of the sale is still pending after two minutes */
  async check(saleId: string, opLog?: OpLog): Promise<SaleCheck> {
    const ports = { store: createBucketAudit(this.redis), repository: createOrderAudit(this.mysql), clock };
    const atRest = await waitUntilAtRest(saleId, ports, REST_TIMEOUT_MS);
    if (!atRest)
      throw new BenchError(`sale ${saleId} still has open work after ${REST_TIMEOUT_MS / 1000} s; the data is kept`);
    return checkSale(saleId, ports, opLog);
  }

  /**
   * Removes every sale from Redis and MySQL, so that each scenario starts with small tables. An earlier sale must not
   * slow down the next one, and a keeper rebuilds every sale that MySQL has and Redis lacks. Called only on the
   * instance of the bench, after its check has passed.
   */
  async empty(): Promise<void> {
    for (const table of TABLES_OF_SALES) await this.mysql.execute(`TRUNCATE TABLE ${table}`);
    // not truncated, because reused ids would meet caches of the programs
    await this.mysql.execute('DELETE FROM sales');
    const { redis } = this.redis;
    await redis.flushdb('ASYNC');
    await redis.bgrewriteaof().catch(() => undefined); // a rewrite is already running
    const deadlineMs = Date.now() + REWRITE_WAIT_MS;
    while (Date.now() < deadlineMs) {
      await clock.sleep(REWRITE_POLL_MS);
      const info = await redis.info('persistence');
      if (/aof_rewrite_in_progress:0/.test(info) && /aof_rewrite_scheduled:0/.test(info)) return;
    }
  }

  async close(): Promise<void> {
    await this.redis.close();
    await this.mysql.close();
  }
}

/** The content of Redis and MySQL after a scenario, compared with the answers to its buyers. */
export interface SaleVerdict {
  /** Answers 2xx, as counted by the load generator. */
  readonly accepted: number;
  /** Live rows in MySQL. */
  readonly landed: number;
  readonly oversold: number;
  readonly duplicates: number;
  readonly lost: number;
  /** stock − sold − units left: 0 if no unit is missing from both Redis and MySQL. */
  readonly difference: number;
  /** Why the scenario fails. Empty if everything is right. */
  readonly problems: readonly string[];
}

/** More findings would only repeat the first. */
const PROBLEMS_MAX = 10;

/**
 * Judges a sale at rest.
 * @param answers `accepted`: answers 2xx of all loads on this sale; `unanswered`: requests without an answer, which may
 * or may not have become orders
 */
export function judgeSale(
  answers: { readonly accepted: number; readonly unanswered: number },
  { figures, findings }: SaleCheck,
): SaleVerdict {
  const { liveRows, failedRows, oversold, duplicates, difference, pendingBatches } = figures;
  const missing = Math.max(0, answers.accepted - liveRows);
  const lost = Math.max(figures.lost, missing);
  const unexplained = liveRows - answers.accepted - answers.unanswered;
  const problems = [
    oversold > 0 && `${oversold} units were sold that did not exist`,
    duplicates > 0 && `${duplicates} purchases have more than one row`,
    lost > 0 && `${lost} accepted purchases have no order`,
    difference !== 0 && `${difference} units are neither in Redis nor in MySQL`,
    failedRows > 0 && `${failedRows} accepted purchases ended failed`,
    unexplained > 0 && `${unexplained} orders belong to no accepted request`,
    pendingBatches > 0 && `${pendingBatches} batches are still pending`,
    ...findings.map(({ invariant, detail }) => `${invariant}: ${detail}`),
  ].filter((problem) => problem !== false);
  return {
    accepted: answers.accepted,
    landed: liveRows,
    oversold,
    duplicates,
    lost,
    difference,
    problems: problems.slice(0, PROBLEMS_MAX),
  };
}
