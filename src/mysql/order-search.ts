import { isOrderId } from '../core/ids.js';
import { idBelow, lowestOrderIdAt, mintedAtMs, ORDER_ID_MAX } from '../core/order-id.js';
import type { OrderFilter, OrderPage, OrderSearch } from '../core/ports/order-search.js';
import { NO_CURRENCY, storedAs, type OrderState, type ShownOrder } from '../core/order.js';
import { byOrderId, findInBoth, fromOrders, selectFromBoth, type OrderTable } from './both-tables.js';
import { bigint, knex, select } from './knex.js';
import type { MysqlPool } from './pool.js';
import { nextOrders, type OrderReading } from './order-ranges.js';
import { currenciesOfSales, shownOrders } from './shown-orders.js';
import { ORDER_COLUMNS, type OrderRow, type PaymentRow } from './tables.js';
import { withoutUndefined } from '../core/without-undefined.js';

/** Maximum number of rows that a page examines. This takes some tens of ms. */
const READ_MAX = 10_000;

/** @param readMax number of rows that a page examines; for tests */
export function createOrderSearch(pool: MysqlPool, readMax: number = READ_MAX): OrderSearch {
  return {
    page(filter, after, max) {
      const { userId, saleId, paidFromMs } = filter;
      if (paidFromMs !== undefined) return pageByPayment(pool, { ...filter, paidFromMs }, after, max);
      if (userId !== undefined) return pageOfUser(pool, filter, after, max);
      if (saleId !== undefined) return pageOfSale(pool, { ...filter, saleId }, after, max, readMax);
      return pageById(pool, filter, after, max, readMax);
    },
    async currenciesOf(orderIds) {
      const find = (table: OrderTable, ids: readonly string[]) =>
        select(pool, fromOrders(table).select('id', 'sale_id').whereIn('id', ids.map(bigint)));
      const rows = await findInBoth([...new Set(orderIds)].filter(isOrderId), find, ({ id }) => id);
      const currencies = await currenciesOfSales(pool, rows);
      return new Map(rows.map(({ id, sale_id: saleId }) => [id, currencies.get(saleId) ?? NO_CURRENCY]));
    },
    async detailsOf(orders) {
      if (orders.length === 0) return new Map();
      const saleIds = [...new Set(orders.map(({ saleId }) => saleId))];
      const sales = await select(
        pool,
        knex('sales').select('id', 'sku', 'title', 'price_cents').whereIn('id', saleIds),
      );
      const bySale = new Map(sales.map((sale) => [sale.id, sale]));
      const paid = orders.map(({ orderId, paidAtMs }) => ({
        id: orderId,
        paid_at: paidAtMs === null ? null : new Date(paidAtMs),
      }));
      const paying = await payingPayments(pool, paid);
      return new Map(
        orders.map(({ orderId, saleId }) => {
          const { sku = '', title = '', price_cents: unitPriceCents } = bySale.get(saleId) ?? {};
          const details = { sku, title, paymentId: paying.get(orderId) ?? null };
          return [orderId, unitPriceCents === undefined ? details : { ...details, unitPriceCents }];
        }),
      );
    },
  };
}

const PARTLY_REFUNDED = "after_paid = 'refunded' AND refunded_cents < amount_cents";

/** An order of which only a part was refunded is both `paid` and `refunded`. */
function inState(state: OrderState | undefined): NonNullable<OrderReading['where']> {
  if (state === undefined) return {};
  if (state === 'paid') return knex.raw(`state = 'paid' AND (after_paid IS NULL OR ${PARTLY_REFUNDED})`);
  const [stored, afterPaid] = storedAs(state);
  return { state: stored, after_paid: afterPaid };
}

const indexed = (table: OrderTable, index: string) =>
  knex(knex.raw(`${table} FORCE INDEX (${index})`) as unknown as 'orders');

const matching = (table: OrderTable, { userId, saleId, state }: OrderFilter, from = fromOrders(table)) =>
  from
    .select(...ORDER_COLUMNS)
    .where(withoutUndefined({ user_id: userId, sale_id: saleId }))
    .where(inState(state));

/** Pages back in time through the orders of a user, who has few. The cursor is the last id. */
async function pageOfUser(
  pool: MysqlPool,
  filter: OrderFilter,
  after: string | null,
  max: number,
): Promise<OrderPage | null> {
  if (after !== null && !isOrderId(after)) return null;
  const page = (table: OrderTable) => {
    // forced, because MySQL may read the primary key backwards, past the orders of all other users
    const found = matching(table, filter, indexed(table, 'request'));
    if (after !== null) void found.where('id', '<', bigint(after));
    if (filter.fromMs !== undefined) void found.where('id', '>=', bigint(lowestOrderIdAt(filter.fromMs)));
    if (filter.toMs !== undefined) void found.where('id', '<', bigint(lowestOrderIdAt(filter.toMs)));
    return found.orderBy('id', 'desc').limit(max);
  };
  const rows = (await selectFromBoth<OrderRow>(pool, page, (a, b) => byOrderId(b, a))).slice(0, max);
  const orders = await shownOrders(pool, rows);
  return { orders, next: orders.length < max ? null : (orders.at(-1)?.orderId ?? null) };
}

/** Ids of one transaction are minted within milliseconds, so a range covers less time than this. */
const RANGE_MS = 60_000;

/** Pages along the ranges, so that few orders of other sales are read. The cursor is `<first>-<read>`. */
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
  const reading = { columns: ORDER_COLUMNS, maxOrders: readMax, where: inState(state), limit: max };
  const { rows, next } = await nextOrders<OrderRow>(pool, saleId, from, reading);
  const end = toMs === undefined ? null : BigInt(lowestOrderIdAt(toMs));
  const found = end === null ? rows : rows.filter(({ id }) => BigInt(id) < end);
  const isEnd = next === null || found.length < rows.length || (end !== null && BigInt(next.readTo) >= end);
  return { orders: await shownOrders(pool, found), next: isEnd ? null : `${next.afterFirst}-${next.readTo}` };
}

/** Pages along the primary key, a fixed number of rows at a time. The cursor is the last id that was read. */
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
    // forced, because MySQL would choose a secondary index, which also contains the id, read all of it and sort
    const read = indexed(table, 'PRIMARY')
      .select('id')
      .where('id', '>', bigint(after))
      .where('id', '<', bigint(end))
      .orderBy('id')
      .offset(readMax - 1);
    for (const { id } of await select(pool, read.limit(1))) lasts.push(BigInt(id));
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

/** A payment is stored right before its order becomes paid, so its time is earlier by at most this much. */
const PAID_AFTER_MS = 60_000;

type PaymentPlace = Omit<PaymentRow, 'amount_cents'>;
type PaymentTable = 'payments' | 'payments_archive';
const PAYMENT_PLACE = ['payment_id', 'order_id', 'created_at'] as const;

const byPayment = (a: PaymentPlace, b: PaymentPlace): number =>
  a.created_at.getTime() - b.created_at.getTime() || (a.payment_id < b.payment_id ? -1 : 1);

/** Pages by payment time, because an index of `orders` would cost every order. The cursor is `<ms>.<payment>`. */
async function pageByPayment(
  pool: MysqlPool,
  filter: OrderFilter & { readonly paidFromMs: number },
  after: string | null,
  max: number,
): Promise<OrderPage | null> {
  const { paidFromMs, paidToMs = Infinity } = filter;
  const [, ms = '', paymentId = ''] = /^([0-9]{1,15})\.([!-~]{1,64})$/.exec(after ?? '') ?? [];
  if (after !== null && ms === '') return null;
  const at = new Date(after === null ? Math.max(0, paidFromMs - PAID_AFTER_MS) : Number(ms));
  const page = (table: PaymentTable) => {
    const found = knex(table as 'payments')
      .select(...PAYMENT_PLACE)
      .where('created_at', '>=', at)
      .where((later) => later.where('created_at', '>', at).orWhere('payment_id', '>', paymentId));
    if (paidToMs !== Infinity) void found.where('created_at', '<', new Date(paidToMs));
    return found.orderBy('created_at').orderBy('payment_id').limit(max);
  };
  const live: PaymentPlace[] = await select(pool, page('payments'));
  const seen = new Set(live.map((one) => one.payment_id));
  const archived = (await select(pool, page('payments_archive'))).filter((one) => !seen.has(one.payment_id));
  const payments = [...live, ...archived].sort(byPayment).slice(0, max);
  const orders = await paidBy(pool, payments, filter);
  const last = payments.at(-1);
  const isEnd = last === undefined || payments.length < max;
  return { orders, next: isEnd ? null : `${last.created_at.getTime()}.${last.payment_id}` };
}

/** Returns the orders that these payments paid and that match the filter, in the order of the payments. */
async function paidBy(pool: MysqlPool, payments: readonly PaymentPlace[], filter: OrderFilter): Promise<ShownOrder[]> {
  const { paidFromMs = 0, paidToMs = Infinity, fromMs = 0, toMs = Infinity } = filter;
  const find = (table: OrderTable, ids: readonly string[]) =>
    select(pool, matching(table, filter).whereIn('id', ids.map(bigint)));
  const ids = [...new Set(payments.map((one) => one.order_id))];
  const found = await findInBoth(ids, find, ({ id }) => id);
  const rows = new Map(found.map((row) => [row.id, row]));
  const paying = await payingPayments(pool, found);
  const wanted = payments.flatMap((one) => {
    const row = rows.get(one.order_id);
    const paidAtMs = row?.paid_at?.getTime() ?? -1;
    if (row === undefined || paying.get(row.id) !== one.payment_id) return [];
    const mintedMs = mintedAtMs(row.id);
    const isMeant = paidAtMs >= paidFromMs && paidAtMs < paidToMs && mintedMs >= fromMs && mintedMs < toMs;
    return isMeant ? [row] : [];
  });
  return shownOrders(pool, wanted);
}

/** Finds the last payment before each order was paid, because recording locks the order. Others are owed back. */
async function payingPayments(
  pool: MysqlPool,
  rows: readonly { readonly id: string; readonly paid_at: Date | null }[],
): Promise<Map<string, string>> {
  const paidAt = new Map(rows.flatMap(({ id, paid_at: at }) => (at === null ? [] : [[id, at.getTime()] as const])));
  if (paidAt.size === 0) return new Map();
  const ids = [...paidAt.keys()].map(bigint);
  const of = (table: PaymentTable): Promise<PaymentPlace[]> =>
    select(
      pool,
      knex(table as 'payments')
        .select(...PAYMENT_PLACE)
        .whereIn('order_id', ids),
    );
  const payments = [...(await of('payments')), ...(await of('payments_archive'))].sort(byPayment);
  const paying = new Map<string, string>();
  for (const { order_id: orderId, payment_id: paymentId, created_at: at } of payments) {
    const isBefore = at.getTime() <= (paidAt.get(orderId) ?? 0);
    if (isBefore || !paying.has(orderId)) paying.set(orderId, paymentId);
  }
  return paying;
}
