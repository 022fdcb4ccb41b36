import { createBookAudit } from '../../src/mysql/book-audit.js';
import { openMysqlPool, type MysqlPool } from '../../src/mysql/pool.js';
import { createSaleBook } from '../../src/mysql/sale-book.js';
import { silentLog } from '../../src/ports/log.js';
import type { CheckPorts } from '../../src/reconcile/check-sale.js';
import { connectRedis, type RedisConnection } from '../../src/redis/connection.js';
import { bucketKeys } from '../../src/redis/keys.js';
import { createLedgerAudit } from '../../src/redis/ledger-audit.js';
import { createSaleCardCache } from '../../src/redis/sale-card-cache.js';
import { createSaleLedger } from '../../src/redis/sale-ledger.js';
import { SaleDesk } from '../../src/sale/sale-desk.js';
import { openStack, type Stack } from '../../src/stack/stack.js';
import { SERVER_NAMES } from '../../src/stack/servers/server-spec.js';
import { stackEnv, type StackEnv } from './stack-env.js';

const CARD_CACHE_MS = 5000;

/** The servers of this test run, with the hands a test needs in them. */
export interface TestStack {
  /** To stop, kill and start single servers. */
  readonly servers: Stack;
  readonly env: StackEnv;
  readonly redis: RedisConnection;
  readonly mysql: MysqlPool;
  readonly desk: SaleDesk;
  readonly audit: CheckPorts;
  close(): Promise<void>;
}

/**
 * Opens the stack that `npm test` started. What an earlier test stopped and left stopped runs again afterwards.
 * @throws when the run has no stack of its own
 */
export async function openTestStack(): Promise<TestStack> {
  const dir = process.env.SECKILL_TEST_STACK;
  if (!dir) throw new Error('SECKILL_TEST_STACK is not set. Run `npm test`, which starts a stack of its own.');
  const env = stackEnv();
  const servers = openStack({ dir });
  for (const name of SERVER_NAMES) servers.server(name).kill('SIGCONT');
  await servers.up({ topics: false });
  const redis = await connectRedis({ url: env.REDIS_URL, replyTimeoutMs: 2000, connectTimeoutMs: 2000 }, silentLog);
  const mysql = openMysqlPool({ url: env.MYSQL_URL, poolMax: 4, queryTimeoutMs: 10_000 });
  return {
    ...{ servers, env, redis, mysql },
    desk: new SaleDesk({
      book: createSaleBook(mysql),
      ledger: createSaleLedger(redis),
      cache: createSaleCardCache(redis, { ttlMs: CARD_CACHE_MS }),
    }),
    audit: { ledger: createLedgerAudit(redis), book: createBookAudit(mysql) },
    async close(): Promise<void> {
      await redis.close();
      await mysql.close();
    },
  };
}

/** Batch id → `deducted`, `aborted` or `claimed`. */
export type Markers = ReadonlyMap<string, string>;

/** The markers of every batch of a sale that Redis knows. */
export async function markersOf({ redis: { redis } }: Pick<TestStack, 'redis'>, saleId: string): Promise<Markers> {
  const { tx } = bucketKeys({ saleId, bucket: 0 });
  const markers = new Map<string, string>();
  let cursor = '0';
  do {
    const [next, keys] = await redis.scan(cursor, 'MATCH', `${tx}*`, 'COUNT', 1000);
    cursor = next;
    for (const key of keys) {
      markers.set(key.slice(tx.length), /^[a-z]+/.exec((await redis.get(key)) ?? '')?.[0] ?? 'gone');
    }
  } while (cursor !== '0');
  return markers;
}
