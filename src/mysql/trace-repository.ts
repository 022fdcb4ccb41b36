import { isOrderId } from '../core/ids.js';
import type { RequestRef } from '../core/purchase.js';
import type { OutboxKind } from '../core/ports/outbox.js';
import type { OrderTrace, TracedPromise, TraceRepository, TraceSearch } from '../core/ports/trace-sources.js';
import { ORDER_COLUMNS, orderOf, type OrderRow } from './order-rows.js';
import type { MysqlPool, SqlValue } from './pool.js';

/** Rows that one statement of a walk reads, and statements of a walk at the most. */
const WINDOW_ROWS = 20_000;
const WINDOWS_MAX = 500;
/** Rows of the outbox shown of one purchase; it has a handful. */
const PROMISES_MAX = 20;
/** A row of the outbox is written in the transaction that made or moved the order; that may wait for locks. */
const TRANSACTION_MS = 30_000;

interface RequestRow {
  readonly user_id: string;
  readonly sale_id: string;
  readonly request_id: string;
}
type TracedRow = OrderRow & { readonly updated_at: Date };

/** Reads one purchase for people who ask. */
export function createTraceRepository(pool: MysqlPool, windowRows: number = WINDOW_ROWS): TraceRepository {
  return {
    findRequests: (id, search, max) => findRequests(pool, id, search, max),
    walkForRequest: (requestId, search, max) => walkForRequest(pool, requestId, search, { max, windowRows }),
    read: (request) => read(pool, request),
  };
}

const REQUEST = 'user_id, sale_id, request_id';
const requestOf = (row: RequestRow): RequestRef => ({
  ...{ userId: row.user_id, saleId: row.sale_id, requestId: row.request_id },
});

function narrow({ saleId, userId }: TraceSearch): { readonly sql: string; readonly values: string[] } {
  return {
    sql: `${saleId === undefined ? '' : ' AND sale_id = ?'}${userId === undefined ? '' : ' AND user_id = ?'}`,
    values: [saleId, userId].filter((value) => value !== undefined),
  };
}

async function findRequests(pool: MysqlPool, id: string, search: TraceSearch, max: number): Promise<RequestRef[]> {
  const { sql, values } = narrow(search);
  const by = (condition: string): Promise<RequestRow[]> =>
    pool.query<RequestRow>(`SELECT ${REQUEST} FROM orders WHERE ${condition}${sql} ORDER BY id LIMIT ?`, [
      ...[id, ...values, max],
    ]);
  const found = [
    ...(isOrderId(id) ? await by('id = CAST(? AS UNSIGNED)') : []), // MySQL would read 12x as 12
    ...(await by('batch_id = ?')),
    ...(search.userId === undefined ? [] : await by('request_id = ?')), // the unique key begins with the buyer
  ];
  const distinct = new Map(found.map((row) => [`${row.sale_id}/${row.user_id}/${row.request_id}`, requestOf(row)]));
  return [...distinct.values()].slice(0, max);
}

/** Along the primary key, which grows with time, window by window: an index by request would cost every insert. */
async function walkForRequest(
  pool: MysqlPool,
  requestId: string,
  search: TraceSearch,
  { max, windowRows }: { readonly max: number; readonly windowRows: number },
): Promise<RequestRef[]> {
  const { sql, values } = narrow(search);
  const found: RequestRef[] = [];
  let end: string | null = null;
  for (let windows = 0; windows < WINDOWS_MAX && found.length < max; windows++) {
    const below: string = end === null ? 'TRUE' : 'id < CAST(? AS UNSIGNED)';
    const bound: SqlValue[] = end === null ? [] : [end];
    const [window]: { start: string | null }[] = await pool.query(
      `SELECT MIN(id) AS start FROM (SELECT id FROM orders WHERE ${below} ORDER BY id DESC LIMIT ?) AS next`,
      [...bound, windowRows],
    );
    const start: string | null = window?.start ?? null;
    if (start === null) break;
    const rows = await pool.query<RequestRow>(
      `SELECT ${REQUEST} FROM orders FORCE INDEX (PRIMARY) WHERE id >= CAST(? AS UNSIGNED) AND ${below}` +
        ` AND request_id = ?${sql} ORDER BY id DESC LIMIT ?`,
      [start, ...bound, requestId, ...values, max - found.length],
    );
    found.push(...rows.map(requestOf));
    end = start;
  }
  return found;
}

async function read(pool: MysqlPool, { userId, saleId, requestId }: RequestRef): Promise<OrderTrace> {
  const [clock] = await pool.query<{ readonly now: Date }>('SELECT UTC_TIMESTAMP(3) AS now');
  const nowMs = clock?.now.getTime() ?? Date.now();
  const [row] = await pool.query<TracedRow>(
    `SELECT ${ORDER_COLUMNS}, updated_at FROM orders WHERE user_id = ? AND sale_id = ? AND request_id = ?`,
    [userId, saleId, requestId],
  );
  if (row === undefined) return { order: null, payments: [], refunds: [], couponAtMs: null, promises: [], nowMs };
  return {
    order: { ...orderOf(row), updatedAtMs: row.updated_at.getTime() },
    ...(await moneyOf(pool, row.id)),
    promises: await promisesOf(pool, row),
    nowMs,
  };
}

async function moneyOf(
  pool: MysqlPool,
  orderId: string,
): Promise<Pick<OrderTrace, 'payments' | 'refunds' | 'couponAtMs'>> {
  interface Money {
    readonly payment_id: string;
    readonly amount_cents: string;
    readonly created_at: Date;
  }
  const ofOrder = (table: string): string => `SELECT * FROM ${table} WHERE order_id = ? ORDER BY created_at LIMIT 50`;
  const payments = await pool.query<Money>(ofOrder('payments'), [orderId]);
  const refunds = await pool.query<Money & { reason: string; state: 'due' | 'refunded'; updated_at: Date }>(
    ofOrder('refunds'),
    [orderId],
  );
  const [coupon] = await pool.query<{ created_at: Date }>(ofOrder('coupons'), [orderId]);
  const moneyOf = (row: Money) => ({
    ...{ paymentId: row.payment_id, amountCents: Number(row.amount_cents), atMs: row.created_at.getTime() },
  });
  return {
    payments: payments.map(moneyOf),
    refunds: refunds.map((row) => ({
      ...moneyOf(row),
      ...{ reason: row.reason, state: row.state, updatedAtMs: row.updated_at.getTime() },
    })),
    couponAtMs: coupon?.created_at.getTime() ?? null,
  };
}

/**
 * The rows of its batch by their key, those of its moves by the order id in the payload: one row may carry many orders.
 * The table is read, but payloads only of those minutes in which the order was made or moved.
 */
async function promisesOf(pool: MysqlPool, row: TracedRow): Promise<TracedPromise[]> {
  interface Row {
    readonly id: string;
    readonly kind: OutboxKind;
    readonly attempts: number;
    readonly created_at: Date;
    readonly available_at: Date;
    readonly done_at: Date | null;
  }
  const near = 'created_at BETWEEN ? AND ?';
  const around = (at: Date): Date[] => [
    new Date(at.getTime() - TRANSACTION_MS),
    new Date(at.getTime() + TRANSACTION_MS),
  ];
  const rows = await pool.query<Row>(
    'SELECT id, kind, attempts, created_at, available_at, done_at FROM outbox' +
      ` WHERE (${near} OR ${near}) AND (\`key\` IN (?, ?) OR INSTR(payload, ?) > 0) ORDER BY id LIMIT ?`,
    [...around(row.created_at), ...around(row.updated_at), row.batch_id, row.id, `"${row.id}"`, PROMISES_MAX],
  );
  return rows.map((one) => ({
    ...{ outboxId: one.id, kind: one.kind, attempts: one.attempts, atMs: one.created_at.getTime() },
    ...{ availableAtMs: one.available_at.getTime(), doneAtMs: one.done_at?.getTime() ?? null },
  }));
}
