import type { StackEnv } from '../../../deploy/local/stack/settings.js';
import { SERVER_NAMES } from '../../../deploy/local/stack/servers/server-spec.js';
import { openStack, type Stack } from '../../../deploy/local/stack/stack.js';
import { mysqlIn, redisIn } from '../../helpers/servers.js';
import { silentLog } from '../../helpers/silent-log.js';
import { createOrderAudit } from '../../invariants/order-audit.js';
import { type MysqlPool, openMysqlPool } from '../../../src/mysql/pool.js';
import { createSaleRepository } from '../../../src/mysql/sale-repository.js';
import { connectRedis, type RedisConnection } from '../../../src/redis/connection.js';
import { createSaleSnapshotCache, createSaleStore } from '../../../src/redis/sale-store.js';
import { SaleAdmin } from '../../../src/sales/sale-admin.js';
import type { CheckPorts } from '../../invariants/check-sale.js';
import { createBucketAudit } from '../../invariants/redis-snapshot.js';

const SNAPSHOT_CACHE_MS = 5000;
/** Long, because a machine that boots a broker is slow. */
const REPLY_TIMEOUT_MS = 10_000;
/** Long, because a machine with a dozen programs is slow. */
const MYSQL_CONNECT_TIMEOUT_MS = 20_000;

/** The servers of a run, with connections to break and to read them. */
export interface StackControls {
  /** Stops, kills and starts single servers. */
  readonly servers: Stack;
  readonly env: StackEnv;
  readonly redis: RedisConnection;
  readonly mysql: MysqlPool;
  readonly admin: SaleAdmin;
  readonly audit: CheckPorts;
  close(): Promise<void>;
}

/** Makes every server run and answer again, even after it was stopped or killed. @throws StackError */
export async function restoreServers(servers: Stack): Promise<void> {
  for (const name of SERVER_NAMES) servers.server(name).kill('SIGCONT');
  await servers.up({ topics: false });
}

/**
 * Opens a stack that was already started, and starts its stopped servers again.
 * @param dir folder of the instance
 */
export async function openControls(dir: string, env: StackEnv): Promise<StackControls> {
  const servers = openStack({ dir });
  await restoreServers(servers);
  const timeouts = { replyTimeoutMs: REPLY_TIMEOUT_MS, connectTimeoutMs: 2000 };
  const redis = await connectRedis({ ...redisIn(env), ...timeouts }, silentLog);
  const mysql = openMysqlPool({
    ...mysqlIn(env),
    poolMax: 4,
    queryTimeoutMs: REPLY_TIMEOUT_MS,
    connectTimeoutMs: MYSQL_CONNECT_TIMEOUT_MS,
  });
  return {
    servers,
    env,
    redis,
    mysql,
    admin: new SaleAdmin({
      repository: createSaleRepository(mysql),
      store: createSaleStore(redis),
      cache: createSaleSnapshotCache(redis, { ttlMs: SNAPSHOT_CACHE_MS }),
    }),
    audit: { store: createBucketAudit(redis), repository: createOrderAudit(mysql) },
    async close(): Promise<void> {
      await redis.close();
      await mysql.close();
    },
  };
}
