import type { Knex } from 'knex';
import { isOrderId } from '../../core/ids.js';
import { assert } from '../../core/errors.js';
import type { Metadata } from '../../core/metadata.js';
import type { Order } from '../../core/order.js';
import type { OutboxKind } from '../../core/ports/outbox.js';
import { requestName, type RequestRef } from '../../core/purchase.js';
import type { OrderCursor } from '../../core/ports/reconcile-repository.js';
import { byOrderId, fromOrders, type OrderTable } from '../../mysql/both-tables.js';
import { bigint, knex, select } from '../../mysql/knex.js';
import { nextOrders, type OrderReading, type PageOf } from '../../mysql/order-ranges.js';
import { traceIdLiteral } from '../../mysql/order-traces.js';
import type { MysqlPool } from '../../mysql/pool.js';
import { metadataOf } from '../../mysql/order-metadata.js';
import { ORDER_COLUMNS, orderOf, type OrderRow, type OrderIdRow } from '../../mysql/tables.js';
import { withoutUndefined } from '../../core/without-undefined.js';

/** Rows per statement, and statements per search of all sales: together, the newest 500,000 orders. */
const WINDOW_ROWS = 20_000;
const WINDOWS_MAX = 25;
/** Maximum number of rows of `payments` or `refunds` that are read per order. An order has one or two. */
const PER_ORDER_MAX = 50;
/** Maximum number of outbox rows, and of findings of the witness, shown per purchase. A purchase has a handful. */
const PROMISES_MAX = 20;
/** Longest duration of a transaction that creates or moves an order and writes its outbox row, including lock waits. */
const TRANSACTION_MS = 30_000;

/** Higher than any order id, because ids have 63 bits. */
const ID_AFTER_ALL = '9223372036854775808';

const REQUEST_COLUMNS = ['user_id', 'sale_id', 'request_id'] as const satisfies (keyof OrderRow)[];
type RequestRow = Pick<OrderRow, (typeof REQUEST_COLUMNS)[number]>;
type ListedRow = RequestRow & OrderIdRow;

interface TracedPayment {
  readonly paymentId: string;
  readonly amountCents: number;
  readonly atMs: number;
}

/** Money that is owed back or was paid back. */
interface TracedRefund extends TracedPayment {
  readonly reason: string;
  readonly state: 'due' | 'refunded';
  readonly updatedAtMs: number;
}

export interface TracedOutboxRow {
  readonly outboxId: string;
  readonly kind: OutboxKind;
  readonly attempts: number;
  readonly atMs: number;
  /** When the row is due, or when its lease ends. */
  readonly availableAtMs: number;
  /** Null while it is not done. */
  readonly doneAtMs: number | null;
}

/** A change of the order that no program makes. */
interface TracedChange {
  readonly findingId: string;
  readonly detail: string;
  readonly atMs: number;
}

/** Data about one purchase, without dead letters and audit log. Times are Unix ms on the clock of MySQL. */
export interface OrderTrace {
  /** Null while the purchase is not recorded. */
  readonly order:
    | (Order & { readonly updatedAtMs: number; readonly metadata: Metadata | null; readonly traceId: string | null })
    | null;
  readonly payments: readonly TracedPayment[];
  readonly refunds: readonly TracedRefund[];
  /** Null until the keeper has handled the paid order. Without coupon terms of its sale, it has no code. */
  readonly coupon: { readonly atMs: number; readonly hasCode: boolean } | null;
  readonly outboxRows: readonly TracedOutboxRow[];
  readonly witnessed: readonly TracedChange[];
  readonly nowMs: number;
}

export interface TraceSearch {
  readonly saleId?: string;
  readonly userId?: string;
}

export type TraceRepository = ReturnType<typeof createTraceRepository>;

/** Every method throws OperationalError mysql. */
export const createTraceRepository = (pool: MysqlPool, windowRows: number = WINDOW_ROWS) => ({
  /** Finds rows with this order id or batch id, or this request id if `search` names the buyer. Uses an index. */
  findRequests: (id: string, search: TraceSearch, max: number) => findRequests(pool, id, search, max),

  /** Finds purchases that were recorded with this trace id. Uses an index. */
  findByTrace: (traceId: string, search: TraceSearch, max: number) => findByTrace(pool, traceId, search, max),

  /** Finds any buyer's request id among the orders of the sale in `search`, or the newest 500,000 of all sales. */
  walkForRequest: (requestId: string, search: TraceSearch, max: number) =>
    walkForRequest(pool, requestId, search, max, windowRows),

  read: (request: RequestRef) => read(pool, request),
});

const requestOf = (row: RequestRow): RequestRef => ({
  userId: row.user_id,
  saleId: row.sale_id,
  requestId: row.request_id,
});

/** Reads both tables with a single statement, which sees both at the same moment, so it finds a row that moves. */
const ofBothTables = <R>(pool: MysqlPool, inTable: (table: OrderTable) => Knex.QueryBuilder): Promise<R[]> =>
  select(pool, inTable('orders').unionAll([inTable('orders_archive')])) as Promise<R[]>;

async function findRequests(
  pool: MysqlPool,
  id: string,
  { saleId, userId }: TraceSearch,
  max: number,
): Promise<RequestRef[]> {
  const narrowed = withoutUndefined({ sale_id: saleId, user_id: userId });
  // no limit, because an order, a batch or a buyer with this key has only a few rows
  const where = (one: Readonly<Record<string, string | Knex.Raw>>): Promise<ListedRow[]> =>
    ofBothTables(pool, (table) =>
      fromOrders(table)
        .select(...REQUEST_COLUMNS, 'id')
        .where({ ...narrowed, ...one }),
    );
  const found = await Promise.all([
    isOrderId(id) ? where({ id: bigint(id) }) : [], // MySQL would read 12x as 12
    where({ batch_id: id }),
    userId === undefined ? [] : where({ request_id: id }), // the unique key begins with the buyer
  ]);
  return distinct(found.flatMap((rows) => [...rows].sort(byOrderId))).slice(0, max);
}

/** An order and its `order_traces` row move to the archive in one transaction. */
async function findByTrace(
  pool: MysqlPool,
  traceId: string,
  { saleId, userId }: TraceSearch,
  max: number,
): Promise<RequestRef[]> {
  const found: RequestRow[] = [];
  for (const [orders, traces] of [
    ['orders', 'order_traces'],
    ['orders_archive', 'order_traces_archive'],
  ] as const) {
    const ofTrace = knex(`${orders} AS bought` as 'orders')
      .select<RequestRow[]>(...REQUEST_COLUMNS.map((column) => `bought.${column}`))
      .join(traces, `${traces}.order_id`, 'bought.id')
      .whereRaw(`${traces}.trace_id = ${traceIdLiteral(traceId)}`)
      .where(withoutUndefined({ 'bought.sale_id': saleId, 'bought.user_id': userId }));
    found.push(...(await select(pool, ofTrace.limit(max))));
  }
  return distinct(found).slice(0, max);
}

const namedRequest = (row: RequestRow): [string, RequestRef] => {
  const request = requestOf(row);
  return [requestName(request.saleId, request), request];
};

const distinct = (rows: readonly RequestRow[]): RequestRef[] => [...new Map(rows.map(namedRequest)).values()];

/** Reads all orders of a sale, newest first. */
async function walkSale(
  pool: MysqlPool,
  saleId: string,
  where: OrderReading['where'],
  max: number,
  maxOrders: number,
): Promise<RequestRef[]> {
  let found: ListedRow[] = [];
  let from: OrderCursor | null = null;
  do {
    const reading = { columns: [...REQUEST_COLUMNS, 'id'] as const, maxOrders, ...withoutUndefined({ where }) };
    const page: PageOf<ListedRow> = await nextOrders<ListedRow>(pool, saleId, from, reading);
    found = [...found, ...page.rows].slice(-max);
    from = page.next;
  } while (from !== null);
  return found.reverse().map(requestOf);
}

/** Reads backwards along the primary key, which grows with time. An index by request would cost every insert. */
async function walkForRequest(
  pool: MysqlPool,
  requestId: string,
  { saleId, userId }: TraceSearch,
  max: number,
  windowRows: number,
): Promise<RequestRef[]> {
  if (saleId !== undefined) {
    return walkSale(pool, saleId, withoutUndefined({ request_id: requestId, user_id: userId }), max, windowRows);
  }
  // an order that moves into the archive in between is found twice
  const found = new Map<string, RequestRef>();
  let windows = 0;
  for (const table of ['orders', 'orders_archive'] as const) {
    for (let before = ID_AFTER_ALL; windows < WINDOWS_MAX && found.size < max; windows++) {
      const next = fromOrders(table).select('id').where('id', '<', bigint(before)).orderBy('id', 'desc');
      const [window] = await select(
        pool,
        knex.from(next.limit(windowRows).as('next')).select<{ start: string | null }[]>(knex.raw('MIN(id) AS start')),
      );
      const start = window?.start ?? null;
      if (start === null) break;
      const rows = await select(
        pool,
        knex
          .from(knex.raw(`${table} FORCE INDEX (PRIMARY)`))
          .select<RequestRow[]>(...REQUEST_COLUMNS)
          .where('id', '>=', bigint(start))
          .where('id', '<', bigint(before))
          .where(withoutUndefined({ request_id: requestId, user_id: userId }))
          .orderBy('id', 'desc')
          .limit(max - found.size),
      );
      for (const [name, request] of rows.map(namedRequest)) found.set(name, request);
      before = start;
    }
  }
  return [...found.values()];
}

async function read(pool: MysqlPool, { userId, saleId, requestId }: RequestRef): Promise<OrderTrace> {
  const clock = knex.raw<{ read_at: Date }[]>('SELECT UTC_TIMESTAMP(3) AS read_at');
  const ofRequest = (table: OrderTable) =>
    fromOrders(table)
      .select(...ORDER_COLUMNS, 'updated_at')
      .where({ user_id: userId, sale_id: saleId, request_id: requestId });
  const [[time], [row]] = await Promise.all([
    select(pool, clock),
    ofBothTables<OrderRow & { readonly updated_at: Date }>(pool, ofRequest),
  ]);
  assert(time !== undefined, 'a SELECT without a table returns a row');
  const nowMs = time.read_at.getTime();
  const none = { order: null, payments: [], refunds: [], coupon: null, outboxRows: [], witnessed: [], nowMs };
  if (row === undefined) return none;
  // three at once, because buyers use the pool as well
  const [notes, money, outboxRows] = await Promise.all([
    notesOf(pool, row.id),
    moneyOf(pool, row.id),
    outboxRowsOf(pool, row),
  ]);
  const updatedAtMs = row.updated_at.getTime();
  const order = { ...orderOf(row), ...notes, updatedAtMs };
  return { order, ...money, outboxRows, witnessed: await witnessedOf(pool, row.id), nowMs };
}

async function witnessedOf(pool: MysqlPool, orderId: string): Promise<TracedChange[]> {
  const found = knex('witness_findings').select('id', 'detail', 'committed_at').where({ order_id: orderId });
  const rows = await select(pool, found.orderBy('id').limit(PROMISES_MAX));
  return rows.map((row) => ({ findingId: row.id, detail: row.detail, atMs: row.committed_at.getTime() }));
}

async function notesOf(
  pool: MysqlPool,
  orderId: string,
): Promise<Pick<NonNullable<OrderTrace['order']>, 'metadata' | 'traceId'>> {
  const metadata = (await metadataOf(pool, [orderId])).get(orderId) ?? null;
  return { metadata, traceId: await traceOfOrder(pool, orderId) };
}

/** Finds the trace id with which an order was bought, or null if it is not stored. */
async function traceOfOrder(pool: MysqlPool, orderId: string): Promise<string | null> {
  const inTable = (table: 'order_traces' | 'order_traces_archive') =>
    knex(table as 'order_traces')
      .select('trace_id')
      .where({ order_id: orderId });
  // a single statement sees both tables at the same moment, so it finds a row that moves
  const [row] = await select(pool, inTable('order_traces').unionAll([inTable('order_traces_archive')]));
  return row === undefined ? null : row.trace_id.toString('hex');
}

/** Reads refunds first, so that no refund is shown without its payment. */
async function moneyOf(pool: MysqlPool, orderId: string): Promise<Pick<OrderTrace, 'payments' | 'refunds' | 'coupon'>> {
  const ofOrder = { order_id: orderId };
  const paymentsIn = (table: 'payments' | 'payments_archive') =>
    knex(table as 'payments')
      .select('payment_id', 'amount_cents', 'created_at')
      .where(ofOrder);
  const couponsIn = (table: 'coupons' | 'coupons_archive') =>
    knex(`${table} AS earned` as 'coupons')
      .leftJoin('coupon_codes', 'coupon_codes.order_id', 'earned.order_id')
      .select<{ created_at: Date; code: string | null }[]>('earned.created_at', 'code')
      .where('earned.order_id', bigint(orderId));
  const refunds = await select(
    pool,
    knex('refunds').select('*').where(ofOrder).orderBy('created_at').limit(PER_ORDER_MAX),
  );
  const payments = await select(
    pool,
    paymentsIn('payments')
      .unionAll([paymentsIn('payments_archive')])
      .limit(PER_ORDER_MAX),
  );
  const [coupon] = await select(pool, couponsIn('coupons').unionAll([couponsIn('coupons_archive')]));
  const shownPayments = payments.map((row) => ({
    paymentId: row.payment_id,
    amountCents: Number(row.amount_cents),
    atMs: row.created_at.getTime(),
  }));
  return {
    payments: shownPayments.sort((a, b) => a.atMs - b.atMs),
    refunds: refunds.map((row) => ({
      paymentId: row.payment_id,
      amountCents: Number(row.amount_cents),
      atMs: row.created_at.getTime(),
      reason: row.reason,
      state: row.state,
      updatedAtMs: row.updated_at.getTime(),
    })),
    coupon: coupon === undefined ? null : { atMs: coupon.created_at.getTime(), hasCode: coupon.code !== null },
  };
}

/** Finds rows of its batch by key, and rows of its moves by payload, near the times of creation and last move. */
async function outboxRowsOf(pool: MysqlPool, order: OrderRow): Promise<TracedOutboxRow[]> {
  const around = (at: Date): [Date, Date] => [
    new Date(at.getTime() - TRANSACTION_MS),
    new Date(at.getTime() + TRANSACTION_MS),
  ];
  const rows = await select(
    pool,
    knex('outbox')
      .select('id', 'kind', 'attempts', 'created_at', 'available_at', 'done_at')
      .where((near) =>
        near
          .whereBetween('created_at', around(order.created_at))
          .orWhereBetween('created_at', around(order.updated_at)),
      )
      .where((named) =>
        named.whereIn('key', [order.batch_id, order.id]).orWhereRaw('INSTR(payload, ?) > 0', [`"${order.id}"`]),
      )
      .orderBy('id')
      .limit(PROMISES_MAX),
  );
  return rows.map((row) => ({
    outboxId: row.id,
    kind: row.kind,
    attempts: row.attempts,
    atMs: row.created_at.getTime(),
    availableAtMs: row.available_at.getTime(),
    doneAtMs: row.done_at?.getTime() ?? null,
  }));
}
