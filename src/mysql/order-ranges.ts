import type { Knex } from 'knex';
import { compareIds } from '../core/ids.js';
import { idBelow, ORDER_ID_MAX } from '../core/order-id.js';
import type { OrderCursor } from '../core/ports/reconcile-repository.js';
import type { NewOrder, WritePlan } from '../core/ports/order-repository.js';
import { numeric } from './insert-orders.js';
import { byOrderId, mergeRows } from './both-tables.js';
import { bigint, knex, select } from './knex.js';
import type { MysqlPool, Statements, Transaction } from './pool.js';
import type { OrderRangeRow, OrderRow, OrderIdRow } from './tables.js';

// Each transaction that writes orders records their first and last id in `order_ranges`. An index by sale would cost an
// entry per order; a range costs a row per transaction (docs/decisions/0006).

/** At worst, each range has one order, and the statement has this many conditions. */
const RANGES_PER_PAGE = 1000;

interface Range {
  first: string;
  last: string;
  orders: number;
}

/** Call it in the transaction that inserts the orders. @throws MysqlError */
export async function insertRanges(tx: Transaction, { orders, again = false }: WritePlan): Promise<void> {
  if (orders.length === 0) return;
  let values = '';
  for (const [saleId, { first, last, orders: count }] of rangesBySale(orders)) {
    values += `${values === '' ? '' : ','}(${numeric(saleId)},${numeric(first)},${numeric(last)},${count})`;
  }
  await tx.execute(
    `INSERT INTO order_ranges (sale_id, first_id, last_id, orders) VALUES ${values}${again ? WIDEN : ''}`,
  );
}

const WIDEN = ' ON DUPLICATE KEY UPDATE last_id = GREATEST(last_id, VALUES(last_id)), orders = orders + VALUES(orders)';

/** Ids do not ascend from row to row, because the hash of the buyer orders them within a millisecond. */
function rangesBySale(orders: readonly NewOrder[]): ReadonlyMap<string, Range> {
  const ranges = new Map<string, Range>();
  let of = '';
  let range: Range | undefined;
  for (const { orderId, batch } of orders) {
    if (batch.saleId !== of) range = ranges.get((of = batch.saleId)); // the rows of a batch are adjacent
    if (range === undefined) ranges.set(of, (range = { first: orderId, last: orderId, orders: 0 }));
    else if (compareIds(orderId, range.first) < 0) range.first = orderId;
    else if (compareIds(range.last, orderId) < 0) range.last = orderId;
    range.orders++;
  }
  return ranges;
}

/** The ids from the first to the last, inclusive. */
interface IdWindow {
  readonly first: bigint;
  last: bigint;
}

export const START: OrderCursor = { afterFirst: '0', readTo: '0' };

interface TakenRanges {
  readonly ranges: readonly Pick<OrderRangeRow, 'first_id' | 'last_id' | 'orders'>[];
  readonly isEnd: boolean;
}

/** Reads the next ranges of a sale: at least one, and about as many as contain `maxOrders` of its orders. */
export async function rangesAfter(
  on: Statements,
  saleId: string,
  afterFirst: string,
  maxOrders: number,
): Promise<TakenRanges> {
  const found = await select(
    on,
    knex('order_ranges')
      .select('first_id', 'last_id', 'orders')
      .where({ sale_id: saleId })
      .where('first_id', '>', bigint(afterFirst))
      .orderBy('first_id')
      .limit(RANGES_PER_PAGE),
  );
  let [orders, taken] = [0, 0];
  for (const range of found) {
    if (taken > 0 && orders + range.orders > maxOrders) break;
    taken++;
    orders += range.orders;
  }
  return { ranges: found.slice(0, taken), isEnd: taken === found.length && found.length < RANGES_PER_PAGE };
}

/** Returns the ids of these ranges that are after `readTo`, disjoint and ascending. */
export function windowsOf({ ranges }: TakenRanges, readTo: string): IdWindow[] {
  const windows: IdWindow[] = [];
  let read = BigInt(readTo);
  for (const range of ranges) {
    const [from, last] = [BigInt(range.first_id), BigInt(range.last_id)];
    if (last <= read) continue; // two workers may mint ids in the same millisecond, so ranges overlap
    const first = from > read ? from : read + 1n;
    const before = windows.at(-1);
    if (before?.last === first - 1n) before.last = last;
    else windows.push({ first, last });
    read = last;
  }
  return windows;
}

/** Returns the cursor after these ranges have been read. */
export function behind({ ranges, isEnd }: TakenRanges, { afterFirst, readTo }: OrderCursor): OrderCursor | null {
  if (isEnd) return null;
  const read = ranges.reduce((max, { last_id: last }) => (compareIds(max, last) < 0 ? last : max), readTo);
  return { afterFirst: ranges.at(-1)?.first_id ?? afterFirst, readTo: read };
}

/** @param windows at least one */
export const ordersIn = (saleId: string, windows: readonly IdWindow[]): Knex.QueryBuilder =>
  knex
    .from(knex.raw('orders FORCE INDEX (PRIMARY)'))
    .where({ sale_id: saleId })
    .whereRaw(`(${windows.map(({ first, last }) => `id BETWEEN ${first} AND ${last}`).join(' OR ')})`);

/** Finds the lowest ids in these windows that belong to orders of the sale. */
export async function idsIn(
  on: Statements,
  saleId: string,
  windows: readonly IdWindow[],
  max: number,
): Promise<string[]> {
  if (windows.length === 0) return [];
  const found = ordersIn(saleId, windows).select<OrderIdRow[]>('id').orderBy('id').limit(max);
  return (await select(on, found)).map(({ id }) => id);
}

type Column = keyof OrderRow | Knex.Raw;

export interface OrderReading {
  readonly columns: readonly Column[];
  /** Approximate number of orders of the sale that a page covers. */
  readonly maxOrders: number;
  readonly where?: Knex.Raw | Partial<Pick<OrderRow, 'request_id' | 'user_id' | 'state' | 'after_paid'>>;
  readonly limit?: number;
}

export interface PageOf<Row> {
  readonly rows: readonly Row[];
  readonly next: OrderCursor | null;
}

/**
 * Reads the next rows of a sale in ascending order, from `orders` through the ranges and from the archive through an
 * index. Both reads end at the same id. @param from null for the first page. @returns `next`: null after the last page.
 * A page may be empty even if there are more. @throws MysqlError
 */
export async function nextOrders<Row extends OrderIdRow>(
  pool: MysqlPool,
  saleId: string,
  from: OrderCursor | null,
  reading: OrderReading,
): Promise<PageOf<Row>> {
  const start = from ?? START;
  const live = await nextLive<Row>(pool, saleId, start, reading);
  const end = live.next?.readTo ?? ORDER_ID_MAX;
  const archived = await nextArchived<Row>(pool, saleId, start.readTo, end, reading);
  if (archived.rows.length === 0 && archived.readTo === null) return live;
  // The archive has more rows up to that id than fit into a page, so this page ends where reading the archive ended.
  const to = archived.readTo === null ? null : BigInt(archived.readTo);
  const rows = to === null ? live.rows : live.rows.filter(({ id }) => BigInt(id) <= to);
  const merged = mergeRows(rows, archived.rows, byOrderId);
  const { limit = Infinity } = reading;
  const full = merged[limit - 1];
  if (full !== undefined) {
    return { rows: merged.slice(0, limit), next: { afterFirst: start.afterFirst, readTo: full.id } };
  }
  return {
    rows: merged,
    next: archived.readTo === null ? live.next : { afterFirst: start.afterFirst, readTo: archived.readTo },
  };
}

async function nextLive<Row extends OrderIdRow>(
  pool: MysqlPool,
  saleId: string,
  start: OrderCursor,
  { columns, maxOrders, where = {}, limit }: OrderReading,
): Promise<PageOf<Row>> {
  const taken = await rangesAfter(pool, saleId, start.afterFirst, maxOrders);
  const windows = windowsOf(taken, start.readTo);
  const next = behind(taken, start);
  if (windows.length === 0) return { rows: [], next };
  const found = ordersIn(saleId, windows)
    .select<Row[]>(...columns)
    .where(where)
    .orderBy('id');
  if (limit !== undefined) void found.limit(limit);
  const rows = (await select(pool, found)) as Row[];
  const last = rows.at(-1);
  if (last === undefined || rows.length !== limit) return { rows, next };
  return { rows, next: { afterFirst: start.afterFirst, readTo: last.id } }; // the same ranges, after these rows
}

/** @returns `readTo`: the id at which the page had to end before reaching `end`, or null if it reached `end` */
async function nextArchived<Row extends OrderIdRow>(
  pool: MysqlPool,
  saleId: string,
  after: string,
  end: string,
  { columns, maxOrders, where = {}, limit }: OrderReading,
): Promise<{ readonly rows: readonly Row[]; readonly readTo: string | null }> {
  const ofSale = knex
    .from(knex.raw('orders_archive FORCE INDEX (sale)'))
    .where({ sale_id: saleId })
    .where('id', '>', bigint(after))
    .where('id', '<=', bigint(end))
    .orderBy('id');
  const found = ofSale
    .clone()
    .select<Row[]>(...columns)
    .where(where);
  if (Object.keys(where).length === 0) {
    const rows = (await select(pool, found.limit(Math.min(limit ?? maxOrders, maxOrders)))) as Row[];
    return { rows, readTo: rows.length === maxOrders ? (rows.at(-1)?.id ?? null) : null };
  }
  // The number of matches is unknown, so the index is first asked which id that many orders reach.
  const atEnd = ofSale
    .clone()
    .select<OrderIdRow[]>('id')
    .offset(maxOrders - 1);
  const [last] = (await select(pool, atEnd.limit(1))) as OrderIdRow[];
  if (last !== undefined) void found.where('id', '<=', bigint(last.id));
  if (limit !== undefined) void found.limit(limit);
  return { rows: (await select(pool, found)) as Row[], readTo: last?.id ?? null };
}

/** Reads rows above `after` that no range covers (older workers), which are never archived. Slow. @throws MysqlError */
export async function* unlistedOrders<Row extends OrderIdRow>(
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
    start = end === null ? null : idBelow(end);
  }
}

/** Finds the row after the last row of the window. Only the index is needed, and no temporary table is created. */
async function windowEnd(pool: MysqlPool, start: string, windowRows: number): Promise<string | null> {
  const inReach = knex('orders').select('id').where('id', '>', bigint(start)).orderBy('id');
  const [end] = await select(pool, inReach.offset(windowRows).limit(1));
  return end?.id ?? null;
}

async function allWindows(pool: MysqlPool, saleId: string): Promise<IdWindow[]> {
  const all: IdWindow[] = [];
  for (let cursor: OrderCursor | null = START; cursor !== null;) {
    const taken: TakenRanges = await rangesAfter(pool, saleId, cursor.afterFirst, Infinity);
    for (const window of windowsOf(taken, cursor.readTo)) all.push(window);
    cursor = behind(taken, cursor);
  }
  return all;
}
