import type { Config } from '../core/config/schema.js';
import { openMysqlPool } from '../mysql/pool.js';
import { createSaleBook } from '../mysql/sale-book.js';
import type { Log } from '../core/ports/log.js';
import { createSaleCardCache } from '../redis/sale-card-cache.js';
import { createSaleLedger } from '../redis/sale-ledger.js';
import { SaleDesk } from '../sales/sale-desk.js';
import { openRedis } from './open-redis.js';

/** Opens a sale desk for one piece of work, as a command line needs it, and closes it again. */
export async function withSaleDesk<T>(
  config: Config<'mysql' | 'redis' | 'gate'>,
  log: Log,
  work: (desk: SaleDesk) => Promise<T>,
): Promise<T> {
  const redis = await openRedis(config.redis, log); // first: a pool that is never closed keeps a process alive
  const mysql = openMysqlPool(config.mysql);
  try {
    const cache = createSaleCardCache(redis, { ttlMs: config.gate.cardCacheMs });
    return await work(new SaleDesk({ book: createSaleBook(mysql), ledger: createSaleLedger(redis), cache }));
  } finally {
    await redis.close();
    await mysql.close();
  }
}
