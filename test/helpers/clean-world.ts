import { TABLE_NAMES } from '../../src/mysql/tables.js';
import type { TestStack } from './stack.js';

/** The migrations fill these, and the programs insert no row. */
const KEPT = new Set(['sale_calendar', 'worker_slots']);

/**
 * Empties MySQL and Redis, so that programs that start next have nothing to do for earlier tests. No program may run meanwhile.
 * Ids go on where they were: a message that an earlier test left belongs to no new sale.
 */
export async function cleanWorld({ mysql, redis }: Pick<TestStack, 'mysql' | 'redis'>): Promise<void> {
  for (const table of TABLE_NAMES.filter((name) => !KEPT.has(name))) await mysql.query(`DELETE FROM ${table}`);
  await mysql.query('UPDATE worker_slots SET owner = NULL, leased_until = UTC_TIMESTAMP(3) WHERE owner IS NOT NULL');
  await redis.redis.flushall();
}
