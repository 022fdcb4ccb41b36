import type { Config } from '../core/config/schema.js';
import { OperationalError } from '../core/errors.js';
import { RuleAdmin } from '../admission/rules/rule-admin.js';
import { openMysqlPool } from '../mysql/pool.js';
import { createRuleRepository } from '../mysql/rule-repository.js';
import type { Log } from '../core/ports/log.js';
import { createRuleBroadcast } from '../redis/rule-broadcast.js';
import { openRedis } from './open-redis.js';

/** Opens a `RuleAdmin` for one command and closes its connections. */
export async function withRuleAdmin<T>(
  config: Config<'mysql' | 'redis'>,
  log: Log,
  work: (admin: RuleAdmin) => Promise<T>,
): Promise<T> {
  const redis = await openRedis(config.redis, log).catch(asAway); // first: a pool that is never closed keeps a process alive
  const mysql = openMysqlPool(config.mysql);
  const broadcast =
    redis instanceof OperationalError ? { announce: () => Promise.reject(redis) } : createRuleBroadcast(redis);
  try {
    return await work(new RuleAdmin({ repository: createRuleRepository(mysql), broadcast, log }));
  } finally {
    if (!(redis instanceof OperationalError)) await redis.close();
    await mysql.close();
  }
}

/** The rules are in MySQL: they can be changed without Redis, which is when it may matter most. */
function asAway(error: unknown): OperationalError {
  if (error instanceof OperationalError) return error;
  throw error;
}
