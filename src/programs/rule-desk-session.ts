import type { Config } from '../core/config/schema.js';
import { OperationalError } from '../core/errors.js';
import { RuleDesk } from '../admission/rules/rule-desk.js';
import { openMysqlPool } from '../mysql/pool.js';
import { createRuleStore } from '../mysql/rule-store.js';
import type { Log } from '../core/ports/log.js';
import { createRuleBoard } from '../redis/rule-board.js';
import { openRedis } from './open-redis.js';

/** Opens the desk of the rules for one piece of work, as a command line needs it, and closes it again. */
export async function withRuleDesk<T>(
  config: Config<'mysql' | 'redis'>,
  log: Log,
  work: (desk: RuleDesk) => Promise<T>,
): Promise<T> {
  const redis = await openRedis(config.redis, log).catch(asAway); // first: a pool that is never closed keeps a process alive
  const mysql = openMysqlPool(config.mysql);
  const board = redis instanceof OperationalError ? { post: () => Promise.reject(redis) } : createRuleBoard(redis);
  try {
    return await work(new RuleDesk({ store: createRuleStore(mysql), board, log }));
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
