import { isId, isOrderId, isSaleId } from '../core/ids.js';
import { lowestOrderIdAt } from '../core/order-id.js';
import type { OrderFilter, OrderPage, OrderSearch } from '../core/ports/order-search.js';
import { bigint, given, knex, select } from './knex.js';
import type { MysqlPool } from './pool.js';
import { ORDER_COLUMNS, orderOf } from './tables.js';

/** Rows of the table that one page looks at: some tens of ms. */
const READ_MAX = 10_000;
/** Above every order id: they have 63 bits. */
const ID_MAX = '9223372036854775807';

/** Finds orders by user, sale, state and time. @param readMax rows that one page looks at; for tests */
export function createOrderSearch(pool: MysqlPool, readMax: number = READ_MAX): OrderSearch {
  return {
    page: (filter, after, max) =>
      filter.userId === undefined
        ? pageById(pool, filter, after, max, readMax)
        : pageOfUser(pool, { ...filter, userId: filter.userId }, after, max),
  };
}

const matching = ({ userId, saleId, state }: OrderFilter) =>
  knex('orders')
    .select(...ORDER_COLUMNS)
    .where(given({ user_id: userId, sale_id: saleId, state }));

/** Along the unique key (user, sale, request): a user has few orders. The place is `<sale>.<request>`. */
async function pageOfUser(
  pool: MysqlPool,
  filter: OrderFilter & { readonly userId: string },
  after: string | null,
  max: number,
): Promise<OrderPage | null> {
  let found = matching(filter);
  if (after !== null) {
    const [, saleId, requestId] = /^([^.]+)\.(.+)$/.exec(after) ?? [];
    if (!isSaleId(saleId) || !isId(requestId)) return null;
    found = found.where((later) =>
      later
        .where('sale_id', '<', bigint(saleId))
        .orWhere((same) => same.where({ sale_id: saleId }).where('request_id', '<', requestId)),
    );
  }
  if (filter.fromMs !== undefined) found = found.where('id', '>=', bigint(lowestOrderIdAt(filter.fromMs)));
  if (filter.toMs !== undefined) found = found.where('id', '<', bigint(lowestOrderIdAt(filter.toMs)));
  const rows = await select(pool, found.orderBy('sale_id', 'desc').orderBy('request_id', 'desc').limit(max));
  const orders = rows.map(orderOf);
  const last = orders.at(-1);
  return { orders, next: last === undefined || orders.length < max ? null : `${last.saleId}.${last.requestId}` };
}

/** Along the primary key, so many rows at a time, whether they match or not. The place is the last id that was read. */
async function pageById(
  pool: MysqlPool,
  filter: OrderFilter,
  place: string | null,
  max: number,
  readMax: number,
): Promise<OrderPage | null> {
  if (place !== null && !isOrderId(place)) return null;
  const { toMs } = filter;
  const before = toMs === undefined ? ID_MAX : lowestOrderIdAt(toMs);
  const after = place ?? (await firstPlace(pool, filter));
  const inRange = knex('orders').where('id', '>', bigint(after)).where('id', '<', bigint(before));
  // the last row that this page looks at; none when fewer are left
  const [end] = await select(
    pool,
    inRange
      .clone()
      .select('id')
      .orderBy('id')
      .offset(readMax - 1)
      .limit(1),
  );
  let found = matching(filter).where('id', '>', bigint(after));
  found = end === undefined ? found.where('id', '<', bigint(before)) : found.where('id', '<=', bigint(end.id));
  const orders = (await select(pool, found.orderBy('id').limit(max))).map(orderOf);
  const isFull = orders.length === max;
  return { orders, next: isFull ? (orders.at(-1)?.orderId ?? null) : (end?.id ?? null) };
}

/** Below the first order that can match: of a sale, where its ranges begin. */
async function firstPlace(pool: MysqlPool, { saleId, fromMs = 0 }: OrderFilter): Promise<string> {
  let first = BigInt(lowestOrderIdAt(fromMs));
  if (saleId !== undefined) {
    const ranges = knex('order_ranges').select('first_id').where({ sale_id: saleId }).orderBy('first_id').limit(1);
    const [range] = await select(pool, ranges);
    if (range !== undefined && BigInt(range.first_id) > first) first = BigInt(range.first_id);
  }
  return String(first > 0n ? first - 1n : first);
}
