import type { Knex } from 'knex';
import { compareIds } from '../core/ids.js';
import { knex, select } from './knex.js';
import type { Statements } from './pool.js';
import type { OrderIdRow } from './tables.js';

// Orders only ever move from `orders` to `orders_archive` (docs/decisions/0032). Reading `orders` first misses no
// order. An order that moves in between is seen twice, and counted once by its id.

export type OrderTable = 'orders' | 'orders_archive';

export const fromOrders = (table: OrderTable) => knex(table as 'orders');

export const byOrderId = (a: OrderIdRow, b: OrderIdRow): number => compareIds(a.id, b.id);

/** Reads the rows of both tables, each order once, sorted by `order` as the statement sorts them. @throws MysqlError */
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

/** Finds rows by name. Searches the archive only for names that `orders` lacks. @throws MysqlError */
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
