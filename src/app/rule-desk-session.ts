import type { Config } from '../config/schema.js';
import { RuleDesk } from '../entry/rules/rule-desk.js';
import { openMysqlPool } from '../mysql/pool.js';
import { createRuleStore } from '../mysql/rule-store.js';
import type { Log } from '../ports/log.js';
import { createRuleBoard } from '../redis/rule-board.js';
import { openRedis } from './open-redis.js';

/** Opens the desk of the rules for one piece of work, as a command line needs it, and closes it again. */
export async function withRuleDesk<T>(
  config: Config<'mysql' | 'redis'>,
  log: Log,
  work: (desk: RuleDesk) => Promise<T>,
): Promise<T> {
  const redis = await openRedis(config.redis, log); // first: a pool that is never closed keeps a process alive
  const mysql = openMysqlPool(config.mysql);
  try {
    return await work(new RuleDesk({ store: createRuleStore(mysql), board: createRuleBoard(redis), log }));
  } finally {
    await redis.close();
    await mysql.close();
  }
}
