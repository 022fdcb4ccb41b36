import type { Knex } from 'knex';
import type { OrderCursor } from '../core/ports/reconcile-repository.js';
import type { NewOrder, WritePlan } from '../core/ports/order-repository.js';
import { numeric } from './insert-orders.js';
import { bigint, knex, select } from './knex.js';
import type { MysqlPool, Statements, Transaction } from './pool.js';
import type { OrderRow } from './tables.js';

// `order_ranges` says where the orders of a sale stand in `orders`: each transaction that writes some leaves the first and
// the last of their ids, which were minted together and lie close. An index by sale would cost every order an entry; this
// costs every transaction a row (docs/decisions/0027).

/** Ranges of one page: at worst each has one order, and the statement has so many conditions. */
const RANGES_PER_PAGE = 1000;

interface Range {
  first: string;
  last: string;
  orders: number;
}

/** Notes where the orders of a plan stand, in the transaction that inserts them. @throws MysqlError */
export async function insertRanges(tx: Transaction, { orders }: WritePlan): Promise<void> {
  if (orders.length === 0) return;
  let values = '';
  for (const [saleId, { first, last, orders: count }] of rangesBySale(orders)) {
    values += `${values === '' ? '' : ','}(${numeric(saleId)},${numeric(first)},${numeric(last)},${count})`;
  }
  await tx.execute(`INSERT INTO order_ranges (sale_id, first_id, last_id, orders) VALUES ${values}`);
}

/** Ids are not minted in order: within a millisecond the buyer decides. */
function rangesBySale(orders: readonly NewOrder[]): ReadonlyMap<string, Range> {
  const ranges = new Map<string, Range>();
  let of = '';
  let range: Range | undefined;
  for (const { orderId, batch } of orders) {
    if (batch.saleId !== of) range = ranges.get((of = batch.saleId)); // rows of a batch stand together
    if (range === undefined) ranges.set(of, (range = { first: orderId, last: orderId, orders: 0 }));
    else if (isLess(orderId, range.first)) range.first = orderId;
    else if (isLess(range.last, orderId)) range.last = orderId;
    range.orders++;
  }
  return ranges;
}

/** Decimal strings by value. */
const isLess = (a: string, b: string): boolean => (a.length === b.length ? a < b : a.length < b.length);

/** Ids from the first to the last one, both inclusive. */
interface IdWindow {
  readonly first: bigint;
  last: bigint;
}

const START: OrderCursor = { afterFirst: '0', readTo: '0' };

/** The next windows of ids with orders of the sale, disjoint and ascending: those of about `maxOrders` of its orders. */
async function nextWindows(
  on: Statements,
  saleId: string,
  { afterFirst, readTo }: OrderCursor,
  maxOrders: number,
): Promise<{ readonly windows: readonly IdWindow[]; readonly next: OrderCursor | null }> {
  const ranges = await select(
    on,
    knex('order_ranges')
      .select('first_id', 'last_id', 'orders')
      .where({ sale_id: saleId })
      .where('first_id', '>', bigint(afterFirst))
      .orderBy('first_id')
      .limit(RANGES_PER_PAGE),
  );
  const windows: IdWindow[] = [];
  let [after, read, orders, taken] = [afterFirst, BigInt(readTo), 0, 0];
  for (const range of ranges) {
    if (taken > 0 && orders + range.orders > maxOrders) break;
    taken++;
    orders += range.orders;
    after = range.first_id;
    const [from, last] = [BigInt(range.first_id), BigInt(range.last_id)];
    if (last <= read) continue; // two workers mint ids in the same millisecond, so ranges overlap
    const first = from > read ? from : read + 1n;
    const before = windows.at(-1);
    if (before?.last === first - 1n) before.last = last;
    else windows.push({ first, last });
    read = last;
  }
  const isEnd = taken === ranges.length && ranges.length < RANGES_PER_PAGE;
  return { windows, next: isEnd ? null : { afterFirst: after, readTo: String(read) } };
}

type Column = keyof OrderRow | Knex.Raw;

export interface OrderReading {
  readonly columns: readonly Column[];
  /** Orders of the sale that one page is about. */
  readonly maxOrders: number;
  /** Only rows with these values. */
  readonly where?: Partial<Pick<OrderRow, 'request_id' | 'user_id' | 'state'>>;
  /** Rows of one page at the most. Absent: all of them. */
  readonly limit?: number;
}

export interface PageOf<Row> {
  readonly rows: readonly Row[];
  readonly next: OrderCursor | null;
}

/**
 * The next rows of a sale, by its ranges and ascending.
 * @param from null: the first ones
 * @returns `next`: where to go on; null when these were the last ones. A page may be empty all the same
 * @throws MysqlError
 */
export async function nextOrders<Row extends Pick<OrderRow, 'id'>>(
  pool: MysqlPool,
  saleId: string,
  from: OrderCursor | null,
  { columns, maxOrders, where = {}, limit }: OrderReading,
): Promise<PageOf<Row>> {
  const start = from ?? START;
  const { windows, next } = await nextWindows(pool, saleId, start, maxOrders);
  if (windows.length === 0) return { rows: [], next };
  const inWindows = windows.map(({ first, last }) => `id BETWEEN ${first} AND ${last}`).join(' OR ');
  const found = knex
    .from(knex.raw('orders FORCE INDEX (PRIMARY)'))
    .select<Row[]>(...columns)
    .where({ ...where, sale_id: saleId })
    .whereRaw(`(${inWindows})`)
    .orderBy('id');
  if (limit !== undefined) void found.limit(limit);
  const rows = (await select(pool, found)) as Row[];
  const last = rows.at(-1);
  if (last === undefined || rows.length !== limit) return { rows, next };
  return { rows, next: { afterFirst: start.afterFirst, readTo: last.id } }; // the same ranges, behind what was read
}

/**
 * Rows of a sale that no range names: a worker of an older version wrote them, or a person. Walks `orders` by its primary
 * key, so for a rare case only.
 * @param after the id to begin behind
 * @throws MysqlError
 */
export async function* unlistedOrders<Row extends Pick<OrderRow, 'id'>>(
  pool: MysqlPool,
  saleId: string,
  after: string,
  columns: readonly Column[],
  windowRows: number,
): AsyncGenerator<readonly Row[]> {
  const listed = await allWindows(pool, saleId);
  let at = 0;
  let start: string | null = after;
  while (start !== null) {
    const end: string | null = await windowEnd(pool, start, windowRows);
    const inWindow = knex('orders')
      .select<Row[]>(...columns)
      .where({ sale_id: saleId })
      .where('id', '>', bigint(start));
    if (end !== null) void inWindow.where('id', '<', bigint(end));
    const rows = (await select(pool, inWindow.orderBy('id'))) as Row[];
    const unlisted = rows.filter(({ id }) => {
      while (at < listed.length && (listed[at] as IdWindow).last < BigInt(id)) at++;
      return at === listed.length || BigInt(id) < (listed[at] as IdWindow).first;
    });
    if (unlisted.length > 0) yield unlisted;
    start = end === null ? null : String(BigInt(end) - 1n);
  }
}

/** One row further than the window is long, so the index alone answers, and nothing is kept in a temporary table. */
async function windowEnd(pool: MysqlPool, start: string, windowRows: number): Promise<string | null> {
  const inReach = knex('orders').select('id').where('id', '>', bigint(start)).orderBy('id');
  const [end] = await select(pool, inReach.offset(windowRows).limit(1));
  return end?.id ?? null;
}

async function allWindows(pool: MysqlPool, saleId: string): Promise<IdWindow[]> {
  const all: IdWindow[] = [];
  for (let cursor: OrderCursor | null = START; cursor !== null;) {
    const { windows, next }: Awaited<ReturnType<typeof nextWindows>> = await nextWindows(
      pool,
      saleId,
      cursor,
      Infinity,
    );
    for (const window of windows) all.push(window);
    cursor = next;
  }
  return all;
}
