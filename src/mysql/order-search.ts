import { compareIds, isId, isOrderId, isSaleId } from '../core/ids.js';
import { idBelow, lowestOrderIdAt, ORDER_ID_MAX } from '../core/order-id.js';
import type { OrderFilter, OrderPage, OrderSearch } from '../core/ports/order-search.js';
import { NO_CURRENCY, storedAs, type OrderState } from '../core/order.js';
import { byOrderId, findInBoth, fromOrders, selectFromBoth, type OrderTable } from './both-tables.js';
import { bigint, knex, select } from './knex.js';
import type { MysqlPool } from './pool.js';
import { nextOrders } from './order-ranges.js';
import { currenciesOfSales, shownOrders } from './shown-orders.js';
import { ORDER_COLUMNS, type OrderRow, type OrderIdRow } from './tables.js';
import { withoutUndefined } from '../core/without-undefined.js';

/** Maximum number of rows that a page examines: some tens of ms. */
const READ_MAX = 10_000;

/** Finds orders by user, sale, state and time. @param readMax rows that a page examines; for tests */
export function createOrderSearch(pool: MysqlPool, readMax: number = READ_MAX): OrderSearch {
  return {
    page(filter, after, max) {
      const { userId, saleId } = filter;
      if (userId !== undefined) return pageOfUser(pool, { ...filter, userId }, after, max);
      if (saleId !== undefined) return pageOfSale(pool, { ...filter, saleId }, after, max, readMax);
      return pageById(pool, filter, after, max, readMax);
    },
    currenciesOf: (orderIds) => currenciesOf(pool, orderIds),
  };
}

async function currenciesOf(pool: MysqlPool, orderIds: readonly string[]): Promise<Map<string, string>> {
  const find = (table: OrderTable, ids: readonly string[]) =>
    select(pool, fromOrders(table).select('id', 'sale_id').whereIn('id', ids.map(bigint)));
  const rows = await findInBoth([...new Set(orderIds)].filter(isOrderId), find, ({ id }) => id);
  const currencies = await currenciesOfSales(pool, rows);
  return new Map(rows.map(({ id, sale_id: saleId }) => [id, currencies.get(saleId) ?? NO_CURRENCY]));
}

/** Returns the columns that a state is stored in. Nothing without a state. */
function columnsOf(state: OrderState | undefined): Partial<Pick<OrderRow, 'state' | 'after_paid'>> {
  if (state === undefined) return {};
  const [stored, afterPaid] = storedAs(state);
  return { state: stored, after_paid: afterPaid };
}

const matching = (table: OrderTable, { userId, saleId, state }: OrderFilter) =>
  fromOrders(table)
    .select(...ORDER_COLUMNS)
    .where(withoutUndefined({ user_id: userId, sale_id: saleId, ...columnsOf(state) }));

/** Newest sale first, as in the statement. */
const byPlace = (a: OrderRow, b: OrderRow): number =>
  compareIds(b.sale_id, a.sale_id) || (a.request_id < b.request_id ? 1 : -1);

/**
 * Pages along the unique key (user, sale, request): a user has few orders, in either table. The cursor is
 * `<sale>.<request>`.
 */
async function pageOfUser(
  pool: MysqlPool,
  filter: OrderFilter & { readonly userId: string },
  after: string | null,
  max: number,
): Promise<OrderPage | null> {
  const [, saleId = '', requestId = ''] = /^([^.]+)\.(.+)$/.exec(after ?? '') ?? [];
  if (after !== null && (!isSaleId(saleId) || !isId(requestId))) return null;
  const page = (table: OrderTable) => {
    let found = matching(table, filter);
    if (after !== null) {
      found = found.where((later) =>
        later
          .where('sale_id', '<', bigint(saleId))
          .orWhere((same) => same.where({ sale_id: saleId }).where('request_id', '<', requestId)),
      );
    }
    if (filter.fromMs !== undefined) found = found.where('id', '>=', bigint(lowestOrderIdAt(filter.fromMs)));
    if (filter.toMs !== undefined) found = found.where('id', '<', bigint(lowestOrderIdAt(filter.toMs)));
    return found.orderBy('sale_id', 'desc').orderBy('request_id', 'desc').limit(max);
  };
  const rows = (await selectFromBoth<OrderRow>(pool, page, byPlace)).slice(0, max);
  const orders = await shownOrders(pool, rows);
  const last = orders.at(-1);
  return { orders, next: last === undefined || orders.length < max ? null : `${last.saleId}.${last.requestId}` };
}

/**
 * Upper bound of the time that a range covers. Ids of one transaction are minted within milliseconds, so a range that
 * begins this long before a time also ends before it.
 */
const RANGE_MS = 60_000;

/**
 * Pages through the ranges of the sale, so orders of other sales are hardly read. The cursor is that of the ranges,
 * `<first>-<read>`.
 */
async function pageOfSale(
  pool: MysqlPool,
  { saleId, state, fromMs = 0, toMs }: OrderFilter & { readonly saleId: string },
  place: string | null,
  max: number,
  readMax: number,
): Promise<OrderPage | null> {
  const [, afterFirst, readTo] = /^([0-9]{1,20})-([0-9]{1,20})$/.exec(place ?? '') ?? [];
  if (place !== null && (afterFirst === undefined || readTo === undefined)) return null;
  const from = {
    afterFirst: afterFirst ?? idBelow(lowestOrderIdAt(fromMs - RANGE_MS)),
    readTo: readTo ?? idBelow(lowestOrderIdAt(fromMs)),
  };
  const reading = { columns: ORDER_COLUMNS, maxOrders: readMax, where: columnsOf(state), limit: max };
  const { rows, next } = await nextOrders<OrderRow>(pool, saleId, from, reading);
  const end = toMs === undefined ? null : BigInt(lowestOrderIdAt(toMs));
  const found = end === null ? rows : rows.filter(({ id }) => BigInt(id) < end);
  const isEnd = next === null || found.length < rows.length || (end !== null && BigInt(next.readTo) >= end);
  return { orders: await shownOrders(pool, found), next: isEnd ? null : `${next.afterFirst}-${next.readTo}` };
}

/**
 * Pages along the primary key, a fixed number of rows at a time, whether they match or not. The cursor is the last id
 * read.
 */
async function pageById(
  pool: MysqlPool,
  filter: OrderFilter,
  place: string | null,
  max: number,
  readMax: number,
): Promise<OrderPage | null> {
  if (place !== null && !isOrderId(place)) return null;
  const { fromMs = 0, toMs } = filter;
  const end = toMs === undefined ? ORDER_ID_MAX : lowestOrderIdAt(toMs);
  const after = place ?? idBelow(lowestOrderIdAt(fromMs));
  // The last row that this page examines in each table. Empty if neither table has a full page left.
  const lasts: bigint[] = [];
  for (const table of ['orders', 'orders_archive'] as const) {
    // forced: MySQL would choose a secondary index, which has the id too, read all of it and sort
    const inRange = knex.from(knex.raw(`${table} FORCE INDEX (PRIMARY)`));
    const read = inRange
      .select<OrderIdRow[]>('id')
      .where('id', '>', bigint(after))
      .where('id', '<', bigint(end))
      .orderBy('id')
      .offset(readMax - 1);
    for (const { id } of (await select(pool, read.limit(1))) as OrderIdRow[]) lasts.push(BigInt(id));
  }
  const last = lasts.length === 0 ? null : String(lasts.reduce((a, b) => (b < a ? b : a)));
  const page = (table: OrderTable) => {
    const found = matching(table, filter).where('id', '>', bigint(after));
    const bounded = last === null ? found.where('id', '<', bigint(end)) : found.where('id', '<=', bigint(last));
    return bounded.orderBy('id').limit(max);
  };
  const rows = (await selectFromBoth<OrderRow>(pool, page, byOrderId)).slice(0, max);
  const orders = await shownOrders(pool, rows);
  const isFull = orders.length === max;
  return { orders, next: isFull ? (orders.at(-1)?.orderId ?? null) : last };
}
