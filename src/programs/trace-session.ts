import type { Config } from '../core/config/schema.js';
import { createAuditLog } from '../mysql/audit-log.js';
import { createCompensationRepository } from '../mysql/compensation-repository.js';
import { createDeadLetterRepository } from '../mysql/dead-letter-repository.js';
import { openMysqlPool, type MysqlPool } from '../mysql/pool.js';
import { createSaleRepository } from '../mysql/sale-repository.js';
import { createTraceRepository } from '../mysql/trace-repository.js';
import type { Log } from '../core/ports/log.js';
import type { TraceBroker } from '../core/ports/trace-sources.js';
import type { RedisConnection } from '../redis/connection.js';
import { createStockStore } from '../redis/stock-store.js';
import { createTraceStore } from '../redis/trace-store.js';
import { TracePurchase } from '../recovery/trace/trace-purchase.js';
import { openRedis } from './open-redis.js';

export interface TraceParts {
  /** Null: the broker is not asked. */
  readonly broker: TraceBroker | null;
  readonly redis: RedisConnection;
  readonly mysql: MysqlPool;
  readonly log: Log;
}

/** Built of reads alone: no part of it can change a store. */
export function createTrace({ broker, redis, mysql, log }: TraceParts, redriveAfterMs: number): TracePurchase {
  return new TracePurchase(
    {
      sales: createSaleRepository(mysql),
      stock: createStockStore(redis, log),
      store: createTraceStore(redis),
      repository: createTraceRepository(mysql),
      deadLetters: createDeadLetterRepository(mysql),
      jobs: createCompensationRepository(mysql),
      audit: createAuditLog(mysql),
      broker,
    },
    { redriveAfterMs },
  );
}

/** Opens a trace for one piece of work, as a command line needs it, and closes it again. */
export async function withTrace<T>(
  config: Config<'mysql' | 'redis' | 'keeper'>,
  { broker, log }: Pick<TraceParts, 'broker' | 'log'>,
  work: (trace: TracePurchase) => Promise<T>,
): Promise<T> {
  const redis = await openRedis(config.redis, log); // first: a pool that is never closed keeps a process alive
  const mysql = openMysqlPool(config.mysql);
  try {
    return await work(createTrace({ broker, redis, mysql, log }, config.keeper.redriveAfterMs));
  } finally {
    await redis.close();
    await mysql.close();
  }
}
