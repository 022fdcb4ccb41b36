import type { Knex } from 'knex';
import { compareIds } from '../core/ids.js';
import { knex, select } from './knex.js';
import type { Statements } from './pool.js';
import type { OrderIdRow } from './tables.js';

// Orders of retired sales are in `orders_archive` (docs/decisions/0032). Orders only ever move into the archive, each
// in one transaction. So a reader that reads `orders` before the archive misses no order. It may see an order twice if
// the order moves in between, and counts it once by its id.

export type OrderTable = 'orders' | 'orders_archive';

/** Starts a query on one of the two tables, which have the same columns. */
export const fromOrders = (table: OrderTable) => knex(table as 'orders');

export const byOrderId = (a: OrderIdRow, b: OrderIdRow): number => compareIds(a.id, b.id);

/**
 * Reads the rows of both tables, each order once.
 * @param query the statement for one table
 * @param order the order in which the statement sorts
 * @throws MysqlError
 */
export async function selectFromBoth<R extends OrderIdRow>(
  on: Statements,
  query: (table: OrderTable) => Knex.QueryBuilder,
  order: (a: R, b: R) => number,
): Promise<readonly R[]> {
  const live = (await select(on, query('orders'))) as R[];
  return mergeRows(live, (await select(on, query('orders_archive'))) as R[], order);
}

/** Merges the rows of both tables in order, each row once. One of the two lists is nearly always empty. */
export function mergeRows<R extends OrderIdRow>(
  live: readonly R[],
  archived: readonly R[],
  order: (a: R, b: R) => number,
): readonly R[] {
  if (archived.length === 0) return live;
  if (live.length === 0) return archived;
  const seen = new Set(live.map(({ id }) => id));
  return [...live, ...archived.filter(({ id }) => !seen.has(id))].sort(order);
}

/**
 * Finds the rows with these names. Searches the archive only for names that `orders` lacks.
 * @param find reads one table
 * @param nameOf the name of a row
 * @throws MysqlError
 */
export async function findInBoth<R>(
  names: readonly string[],
  find: (table: OrderTable, names: readonly string[]) => Promise<readonly R[]>,
  nameOf: (row: R) => string,
): Promise<readonly R[]> {
  if (names.length === 0) return [];
  const live = await find('orders', names);
  const found = new Set(live.map(nameOf));
  const missing = names.filter((name) => !found.has(name));
  return missing.length === 0 ? live : [...live, ...(await find('orders_archive', missing))];
}
