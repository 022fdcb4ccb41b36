import { randomBytes } from 'node:crypto';
import { systemClock as clock } from '../src/programs/system-clock.js';
import { rebuildStores } from '../src/programs/operator.js';
import { lowestOrderIdAt } from '../src/core/order-id.js';
import type { Log } from '../src/core/ports/log.js';
import { migrate } from '../src/mysql/migrate.js';
import { openMysqlPool, type MysqlPool } from '../src/mysql/pool.js';
import { createSaleRepository } from '../src/mysql/sale-repository.js';
import { connectRedis } from '../src/redis/connection.js';
import { bucketKeys } from '../src/redis/keys.js';
import { repairSale, type RepairStep } from '../src/recovery/repair/repair-sale.js';

/**
 * How long a sale is shut while it is rebuilt, among the orders of other sales (decision 27). Needs MYSQL_URL, whose user
 * may create a database, and REDIS_URL, of servers that are for this only:
 *
 *   node --import tsx bench/rebuild.ts [orders] [others]      # 1,000,000 among 20,000,000, some minutes
 *
 * A fifth of the other orders was sold in the same milliseconds and by the same transactions, the rest by later sales.
 * Each case is rebuilt from nothing, and again with all that Redis has then.
 */
const ORDERS = Number(process.argv[2] ?? 1_000_000);
const OTHERS = Number(process.argv[3] ?? 20 * ORDERS);
/** Orders a ms, and of one transaction. */
const PER_MS = 10;
const PER_TRANSACTION = 300;
const ROWS_PER_STATEMENT = 250_000;
const OPTIONS = { quietMs: 1_500, waitMaxMs: 15_000, leaseMs: 30_000 };
const MS = 1n << 22n;

const log: Log = { debug: () => undefined, info: () => undefined, warn: console.warn, error: console.error };
const say = (line: string): void => void process.stdout.write(`${line}\n`);
const seconds = (sinceMs: number): string => ((clock.nowMs() - sinceMs) / 1000).toFixed(1);

const { MYSQL_URL = '', REDIS_URL = '' } = process.env;
const database = `seckill_own_${randomBytes(6).toString('hex')}`;
const server = openMysqlPool({ url: MYSQL_URL, poolMax: 1, queryTimeoutMs: 600_000 });
await server.execute(`CREATE DATABASE ${database}`);
const { href: url } = Object.assign(new URL(MYSQL_URL), { pathname: `/${database}` });
const redis = await connectRedis({ url: REDIS_URL, replyTimeoutMs: 10_000, connectTimeoutMs: 3_000 }, log);
let saleId = '';
try {
  await migrate({ url });
  const filling = openMysqlPool({ url, poolMax: 2, queryTimeoutMs: 600_000 });
  saleId = await fill(filling);
  await filling.close();
  await rebuild('from nothing');
  await rebuild('with all that Redis has');
} finally {
  if (saleId !== '') await redis.redis.unlink(...Object.values(bucketKeys({ saleId, bucket: 0 })));
  await redis.close();
  await server.execute(`DROP DATABASE ${database}`);
  await server.close();
}

/** @returns the sale whose orders are the first fifth of the table, among others */
async function fill(mysql: MysqlPool): Promise<string> {
  const sales = createSaleRepository(mysql);
  const nowMs = clock.nowMs();
  const times = { opensAtMs: nowMs - 86_400_000, closesAtMs: nowMs + 3_600_000 };
  const terms = {
    title: 'A thing',
    priceCents: 1999,
    currency: 'EUR',
    warmBeforeMs: null,
    limitPerBuyer: 1,
    buckets: 1,
    ...times,
  };
  const { saleId: id } = await sales.create({ sku: 'rebuilt', stock: ORDERS + 1000, ...terms });
  await mysql.execute("UPDATE sales SET state = 'open', sold = ? WHERE id = ?", [ORDERS, id]);
  // No rebuild reads them, and they would take most of the time here.
  await mysql.execute('ALTER TABLE orders DROP KEY request, DROP KEY active, DROP KEY batch, DROP KEY expiry');
  const startedMs = clock.nowMs();
  const base = BigInt(lowestOrderIdAt(times.opensAtMs + 1000));
  const among = ORDERS + Math.floor(OTHERS / 5);
  const every = Math.floor(among / ORDERS);
  const total = ORDERS + OTHERS;
  for (let from = 0; from < total; from += ROWS_PER_STATEMENT) {
    const count = Math.min(ROWS_PER_STATEMENT, total - from);
    const nth = `(seq + ${from})`;
    const isOurs = `${nth} < ${every * ORDERS} AND ${nth} MOD ${every} = 0`;
    const isLater = `${nth} >= ${among}`;
    const other = `IF(${isLater}, 1000000 + ${nth} DIV 1000000, 2000000 + ${nth} MOD ${every})`;
    await mysql.execute(
      `INSERT INTO orders (id, sale_id, user_id, request_id, batch_id, quantity, amount_cents, one_per_buyer)
       SELECT ${base} + ${nth} * ${MS / BigInt(PER_MS)}, IF(${isOurs}, ${id}, ${other}), CONCAT('user-', ${nth}), 'k1',
         CONCAT('0123456789abcdef', ${nth} DIV ${PER_TRANSACTION}), 1, 1999, 1 FROM seq_0_to_${count - 1}`,
    );
    await mysql.execute(
      `INSERT INTO order_ranges (sale_id, first_id, last_id, orders)
       SELECT sale_id, MIN(id), MAX(id), COUNT(*) FROM orders
       WHERE id >= ${base + (BigInt(from) * MS) / BigInt(PER_MS)}
       GROUP BY sale_id, (id - ${base}) DIV ${(BigInt(PER_TRANSACTION) * MS) / BigInt(PER_MS)}
       ON DUPLICATE KEY UPDATE last_id = order_ranges.last_id`,
    );
    if (from % 5_000_000 === 0) say(`filled ${from + count} of ${total} orders, ${seconds(startedMs)} s`);
  }
  return id;
}

async function rebuild(title: string): Promise<void> {
  const mysql = openMysqlPool({ url, poolMax: 4, queryTimeoutMs: 10_000 });
  const stores = rebuildStores(redis, mysql);
  const sale = await stores.sales.find(saleId);
  if (sale === null) throw new Error('the sale is gone');
  const startedMs = clock.nowMs();
  const cpu = process.cpuUsage();
  const steps: string[] = [];
  const onStep = ({ step }: RepairStep): void => void steps.push(`${step} ${seconds(startedMs)}`);
  const result = await repairSale(sale, { ...stores, progress: null, clock, log }, OPTIONS, { actor: 'bench', onStep });
  const { user, system } = process.cpuUsage(cpu);
  await mysql.close();
  if (result.outcome !== 'repaired' || result.rows !== ORDERS)
    throw new Error(`not rebuilt: ${JSON.stringify(result)}`);
  const used = `${((user + system) / 1e6).toFixed(1)} s of CPU here`;
  say(`${ORDERS} orders among ${OTHERS}, ${title}: shut for ${seconds(startedMs)} s (${steps.join(', ')}; ${used})`);
}
