import type { Config } from '../core/config/schema.js';
import { openMysqlPool } from '../mysql/pool.js';
import { createSaleRepository } from '../mysql/sale-repository.js';
import type { Log } from '../core/ports/log.js';
import { createSaleSnapshotCache } from '../redis/sale-snapshot-cache.js';
import { createSaleStore } from '../redis/sale-store.js';
import { SaleAdmin } from '../sales/sale-admin.js';
import { openRedis } from './open-redis.js';

/** Opens a sale desk for one piece of work, as a command line needs it, and closes it again. */
export async function withSaleAdmin<T>(
  config: Config<'mysql' | 'redis' | 'gate'>,
  log: Log,
  work: (admin: SaleAdmin) => Promise<T>,
): Promise<T> {
  const redis = await openRedis(config.redis, log); // first: a pool that is never closed keeps a process alive
  const mysql = openMysqlPool(config.mysql);
  try {
    const cache = createSaleSnapshotCache(redis, { ttlMs: config.gate.snapshotCacheMs });
    return await work(new SaleAdmin({ repository: createSaleRepository(mysql), store: createSaleStore(redis), cache }));
  } finally {
    await redis.close();
    await mysql.close();
  }
}
