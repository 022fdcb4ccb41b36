import { TABLE_NAMES } from '../../src/mysql/tables.js';
import type { TestStack } from './stack.js';

/** Migrations fill these tables, and programs insert no rows into them. */
const KEPT = new Set(['sale_calendar', 'worker_slots']);

/**
 * Empties MySQL and Redis, so that the next programs have no work from earlier tests. No program may run at the same
 * time. Ids keep ascending: a message that an earlier test left belongs to no new sale.
 */
export async function cleanWorld({ mysql, redis }: Pick<TestStack, 'mysql' | 'redis'>): Promise<void> {
  for (const table of TABLE_NAMES.filter((name) => !KEPT.has(name))) await mysql.query(`DELETE FROM ${table}`);
  await mysql.query('UPDATE worker_slots SET owner = NULL, leased_until = UTC_TIMESTAMP(3) WHERE owner IS NOT NULL');
  await redis.redis.flushall();
}
