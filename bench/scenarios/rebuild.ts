import { randomBytes } from 'node:crypto';
import { lowestOrderIdAt } from '../../src/core/order-id.js';
import type { Log } from '../../src/core/ports/log.js';
import { migrate } from '../../src/mysql/migrate.js';
import { openMysqlPool, type MysqlPool } from '../../src/mysql/pool.js';
import { createSaleRepository } from '../../src/mysql/sale-repository.js';
import { rebuildStores } from '../../src/process/sale-parts.js';
import { systemClock as clock } from '../../src/process/system-clock.js';
import { createLog } from '../../src/process/telemetry.js';
import { repairSale, type RepairStep } from '../../src/recovery/repair/repair-sale.js';
import { connectRedis, type RedisConnection } from '../../src/redis/connection.js';
import { bucketKeys } from '../../src/redis/keys.js';
import { makeNumbers } from '../../test/helpers/numbers.js';
import { BenchError } from '../bench-error.js';
import { cpuTimes } from '../session/cpu.js';
import type { Session } from '../session/session.js';
import type { Context } from './context.js';

/**
 * Number of other orders in the table for each order of the sale. A fifth of them was sold in the same milliseconds and
 * transactions.
 */
const OTHERS_PER_ORDER = 20;
/** Orders per ms, and per transaction. */
const PER_MS = 10;
const PER_TRANSACTION = 300;
const ROWS_PER_STATEMENT = 500_000;
const PROGRESS_EVERY_ROWS = 5_000_000;
/** The difference between the ids of two consecutive orders. */
const ID_STEP = (1n << 22n) / BigInt(PER_MS);
/** Larger than every sale id of this stack, because the sales of the other database share its Redis. */
const SALES_FROM = 900_000_000;
const FILL_TIMEOUT_MS = 600_000;
const OPTIONS = { quietMs: 1_500, waitMaxMs: 15_000, leaseMs: 30_000 };

/** The figures of one rebuild. Buyers of the sale would get 503 while it is locked. */
interface Rebuilt {
  readonly title: string;
  readonly lockedSeconds: number;
  /** Steps of the repair, in seconds since it began. */
  readonly steps: string;
  /** CPU seconds of this process, which rebuilds as a keeper does, of Redis and of MariaDB. */
  readonly cpu: Readonly<Record<'keeper' | 'redis' | 'mariadb', number>>;
}

export interface RebuildFigures {
  readonly kind: 'rebuild';
  readonly scenario: 'rebuild';
  readonly orders: number;
  readonly others: number;
  readonly fillSeconds: number;
  readonly rebuilt: readonly Rebuilt[];
}

/**
 * Measures how long a sale is locked while it is rebuilt among the orders of other sales (decision 6): first from
 * nothing, then again with everything that Redis then has. Uses a separate database, whose `orders` lacks the keys that
 * no rebuild reads, because they would take most of the time needed to fill it.
 */
export async function rebuild({ session, options: { orders } }: Context): Promise<RebuildFigures> {
  const others = OTHERS_PER_ORDER * orders;
  const { MYSQL_URL, REDIS_URL } = session.stack.env();
  const database = `seckill_rebuild_${randomBytes(6).toString('hex')}`;
  const { href: url } = Object.assign(new URL(MYSQL_URL), { pathname: `/${database}` });
  const redis = await connectRedis(
    { url: REDIS_URL, replyTimeoutMs: 10_000, connectTimeoutMs: 3_000 },
    createLog('bench', 'error'),
  );
  const filling = openMysqlPool({ url, poolMax: 1, queryTimeoutMs: FILL_TIMEOUT_MS });
  let saleId = '';
  try {
    await session.stores.mysql.execute(`CREATE DATABASE ${database}`);
    await migrate({ url });
    const startedMs = clock.nowMs();
    saleId = await fill(filling, { orders, others }, session);
    const fillSeconds = secondsSince(startedMs);
    const rebuilt: Rebuilt[] = [];
    for (const title of ['from nothing', 'with all that Redis has']) {
      const one = await rebuildOnce({ url, redis, saleId, orders }, session);
      session.progress(`rebuild: ${title}: locked for ${one.lockedSeconds.toFixed(1)} s (${one.steps})`);
      rebuilt.push({ title, ...one });
    }
    return { kind: 'rebuild', scenario: 'rebuild', orders, others, fillSeconds, rebuilt };
  } finally {
    await filling.close();
    const { tx: _markers, ...keys } = bucketKeys({ saleId, bucket: 0 });
    if (saleId !== '') await redis.redis.unlink(...Object.values(keys));
    await redis.close();
    await session.stores.mysql.execute(`DROP DATABASE IF EXISTS ${database}`);
  }
}

const secondsSince = (startedMs: number): number => (clock.nowMs() - startedMs) / 1000;

/** @returns the sale whose orders stand at the beginning of the table, among others */
async function fill(
  mysql: MysqlPool,
  { orders, others }: { readonly orders: number; readonly others: number },
  { progress, signal }: Session,
): Promise<string> {
  const nowMs = clock.nowMs();
  const opensAtMs = nowMs - 86_400_000;
  await mysql.execute(`ALTER TABLE sales AUTO_INCREMENT = ${SALES_FROM}`);
  const { saleId } = await createSaleRepository(mysql).create({
    sku: 'rebuilt',
    title: 'A thing',
    priceCents: 1999,
    currency: 'EUR',
    stock: orders + 1000,
    limitPerBuyer: 1,
    buckets: 1,
    warmBeforeMs: null,
    paymentWindowMs: null,
    opensAtMs,
    closesAtMs: nowMs + 3_600_000,
  });
  await mysql.execute("UPDATE sales SET state = 'open', sold = ? WHERE id = ?", [orders, saleId]);
  await makeNumbers(mysql, Math.min(ROWS_PER_STATEMENT, orders + others));
  await mysql.execute('ALTER TABLE orders DROP KEY request, DROP KEY active, DROP KEY batch, DROP KEY expiry');
  const base = BigInt(lowestOrderIdAt(opensAtMs + 1000));
  const among = orders + Math.floor(others / 5);
  const every = Math.floor(among / orders);
  const total = orders + others;
  for (let from = 0; from < total; from += ROWS_PER_STATEMENT) {
    signal.throwIfAborted();
    const count = Math.min(ROWS_PER_STATEMENT, total - from);
    const nth = `(seq - 1 + ${from})`;
    const id = `${base} + ${nth} * ${ID_STEP}`;
    const isOurs = `${nth} < ${every * orders} AND ${nth} MOD ${every} = 0`;
    const other = `IF(${nth} >= ${among}, 1000000 + ${nth} DIV 1000000, 2000000 + ${nth} MOD ${every})`;
    const sale = `IF(${isOurs}, ${saleId}, ${other})`;
    await mysql.transaction(async (tx) => {
      await tx.execute(
        `INSERT INTO orders (id, sale_id, user_id, request_id, batch_id, quantity, amount_cents, one_per_buyer)
         SELECT ${id}, ${sale}, CONCAT('user-', ${nth}), 'k1',
           CONCAT('0123456789abcdef', ${nth} DIV ${PER_TRANSACTION}), 1, 1999, 1 FROM numbers WHERE seq <= ${count}`,
      );
      // if a statement cuts a transaction in two, each part has its own range
      await tx.execute(
        `INSERT INTO order_ranges (sale_id, first_id, last_id, orders)
         SELECT ${sale} AS sale, MIN(${id}), MAX(${id}), COUNT(*) FROM numbers WHERE seq <= ${count}
         GROUP BY sale, ${nth} DIV ${PER_TRANSACTION}`,
      );
    });
    const filled = from + count;
    if (filled % PROGRESS_EVERY_ROWS === 0 || filled === total) {
      progress(`rebuild: filled ${filled.toLocaleString('en')} of ${total.toLocaleString('en')} orders`);
    }
  }
  return saleId;
}

interface OneSale {
  readonly url: string;
  readonly redis: RedisConnection;
  readonly saleId: string;
  readonly orders: number;
}

/** Rebuilds the sale as a keeper does. @throws BenchError if the rebuilt sale lacks an order */
async function rebuildOnce({ url, redis, saleId, orders }: OneSale, session: Session): Promise<Omit<Rebuilt, 'title'>> {
  const log: Log = createLog('bench', 'error');
  const mysql = openMysqlPool({ url, poolMax: 4, queryTimeoutMs: 10_000 });
  try {
    const stores = rebuildStores(redis, mysql);
    const sale = await stores.sales.find(saleId);
    if (sale === null) throw new BenchError(`sale ${saleId} does not exist any more`);
    const { redis: redisPid, mariadb } = session.pids();
    const used = () => [process.pid, redisPid, mariadb].map((pid) => cpuTimes(pid)?.own ?? 0);
    const before = used();
    const startedMs = clock.nowMs();
    const steps: string[] = [];
    const onStep = ({ step }: RepairStep): void => void steps.push(`${step} ${secondsSince(startedMs).toFixed(1)}`);
    const ports = { ...stores, progress: null, clock, log };
    const result = await repairSale(sale, ports, OPTIONS, { actor: 'bench', onStep });
    const lockedSeconds = secondsSince(startedMs);
    const [keeper = 0, ofRedis = 0, ofMariadb = 0] = used().map((seconds, index) => seconds - (before[index] ?? 0));
    if (result.outcome !== 'repaired' || result.rows !== orders) {
      throw new BenchError(`the sale was not rebuilt: ${JSON.stringify(result)}`);
    }
    return { lockedSeconds, steps: steps.join(', '), cpu: { keeper, redis: ofRedis, mariadb: ofMariadb } };
  } finally {
    await mysql.close();
  }
}
