import { ORDER_REFUND_STATES, type OrderRefundState, type RefundTakenOn } from '../../core/ports/order-refunds.js';
import type { Refund } from '../../core/ports/refund-repository.js';
import { withoutUndefined } from '../../core/without-undefined.js';
import { insertAudit } from '../../mysql/audit-log.js';
import { createOrderRefunds } from '../../mysql/order-refunds.js';
import { keyAfter } from '../../mysql/order-refund-rows.js';
import { systemClock as clock } from '../../process/system-clock.js';
import { bigint, knex, PAUSE_MAX_MS, select, waitOver } from '../../mysql/knex.js';
import type { MysqlPool } from '../../mysql/pool.js';
import { markRefunded } from '../../mysql/refund-repository.js';
import type { Columns, OrderRefundRow, RefundRow } from '../../mysql/tables.js';

/** Times are Unix ms on the clock of MySQL. */
export interface StoredRefund extends Omit<Refund, 'state'> {
  /** Id of the refund, if an operator ordered it. Null if the payment could not pay its order. */
  readonly refundId: string | null;
  readonly state: OrderRefundState;
  /** How often the provider has been asked. */
  readonly attempts: number;
  /** Error of the last attempt. Null if there was no error, or no attempt. */
  readonly lastError: string | null;
  /** Id of the refund that retries this failed refund. */
  readonly followedBy: string | null;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

/** Conditions that must all hold. An absent condition matches every refund. */
export interface RefundFilter {
  readonly state?: OrderRefundState;
  readonly saleId?: string;
}

/** A page, oldest first: refunds of payments that paid no order come first, then refunds that operators ordered. */
export interface RefundPage {
  /** Returns refunds after this one. If absent, starts at the oldest. */
  readonly after?: string;
  readonly max: number;
}

/** Returns the name of a refund in a list: `order/12`, or the id of the payment. No payment id contains a slash. */
export const refundName = ({ refundId, paymentId }: StoredRefund): string =>
  refundId === null ? paymentId : `order/${refundId}`;
export const REFUND_NAME = /^order\/([1-9][0-9]{0,17})$/;

/** The refunds of a sale in one state. */
interface RefundCount {
  readonly state: OrderRefundState;
  readonly refunds: number;
  readonly amountCents: number;
}

/**
 * - `done`: it was due, and the caller has to pay it by hand, because no keeper will
 * - `already_refunded`: the provider or another person handled it, so do not pay it
 * - `being_asked`: a keeper is asking the provider, which may pay, so call again in a minute
 */
export type TakeOnOutcome =
  | { readonly outcome: 'done' | 'already_refunded' | 'being_asked'; readonly refund: StoredRefund }
  | { readonly outcome: 'not_found' };

export interface RefundStore {
  /** @throws OperationalError mysql */
  list(filter: RefundFilter, page: RefundPage): Promise<StoredRefund[]>;
  /** Counts refunds that operators ordered. @throws OperationalError mysql */
  counts(saleId: string): Promise<RefundCount[]>;
  /** Claims a refund for a person instead of a keeper, audited. @throws OperationalError mysql; check before paying */
  takeOn(paymentId: string, actor: string): Promise<TakeOnOutcome>;
}

export function createRefundStore(pool: MysqlPool): RefundStore {
  return {
    async list(filter, { after, max }) {
      const ids = filter.saleId === undefined ? null : await orderIdsOf(pool, filter.saleId);
      if (filter.saleId !== undefined && ids === null) return [];
      const [, afterRefundId] = REFUND_NAME.exec(after ?? '') ?? [];
      const isBehind = afterRefundId !== undefined || filter.state === 'failed';
      const owed = isBehind ? [] : await listOwed(pool, filter, ids, { max, ...withoutUndefined({ after }) });
      if (owed === null) return []; // the position is unknown
      if (owed.length === max) return owed;
      return [...owed, ...(await listOrdered(pool, filter, ids, afterRefundId ?? '0', max - owed.length))];
    },
    async counts(saleId) {
      const ids = await orderIdsOf(pool, saleId);
      if (ids === null) return [];
      const counted = knex
        .from('order_refunds as r')
        .whereRaw(ofSale(ids))
        .groupBy('r.state')
        .select<{ state: OrderRefundState; n: string; cents: string }[]>(
          knex.raw('r.state AS state, COUNT(*) AS n, SUM(r.amount_cents) AS cents'),
        );
      const rows = await select(pool, counted);
      return ORDER_REFUND_STATES.flatMap((state) => {
        const row = rows.find((one) => one.state === state);
        return row === undefined ? [] : [{ state, refunds: Number(row.n), amountCents: Number(row.cents) }];
      });
    },
    async takeOn(paymentId, actor) {
      const taken = await takeOn(pool, paymentId, actor);
      return taken.outcome === 'not_found' ? takeOnOrderRefund(pool, paymentId, actor) : taken;
    },
  };
}

/** The payment paid its order, so an operator ordered the refund. */
async function takeOnOrderRefund(pool: MysqlPool, paymentId: string, actor: string): Promise<TakeOnOutcome> {
  const taken = await createOrderRefunds(pool, { clock }).takeOn(paymentId, actor);
  if (taken.outcome === 'not_found') return taken;
  return { outcome: taken.outcome, refund: storedOrderRefund(taken.refund) };
}

export const storedOrderRefund = (refund: Extract<RefundTakenOn, { outcome: 'done' }>['refund']): StoredRefund => {
  const { refundId, paymentId, orderId, amountCents, reason, state, attempts, lastError, followedBy, createdAtMs } =
    refund;
  const stored = { refundId, paymentId, orderId, amountCents, reason, state, attempts, lastError, followedBy };
  return { ...stored, createdAtMs, updatedAtMs: createdAtMs };
};

/** All columns except `available_at`, which tells an operator nothing. */
const STORED_COLUMNS = [
  'payment_id',
  'order_id',
  'amount_cents',
  'reason',
  'state',
  'attempts',
  'last_error',
  'created_at',
  'updated_at',
] as const satisfies (keyof RefundRow & keyof OrderRefundRow)[];

/** The lowest and the highest id of the orders of a sale. Orders of other sales are between them too. */
interface OrderIds {
  readonly saleId: string;
  readonly first: string;
  readonly last: string;
}

async function orderIdsOf(pool: MysqlPool, saleId: string): Promise<OrderIds | null> {
  const bounds = async (table: 'order_ranges' | 'orders_archive', first: string, last: string) => {
    const sql = `SELECT MIN(${first}) AS first, MAX(${last}) AS last FROM ${table} WHERE sale_id = ?`;
    const [row] = await pool.query<{ first: string | null; last: string | null }>(sql, [saleId]);
    const { first: lowest = null, last: highest = null } = row ?? {};
    return lowest === null || highest === null ? [] : [BigInt(lowest), BigInt(highest)];
  };
  const ids = [
    ...(await bounds('order_ranges', 'first_id', 'last_id')),
    ...(await bounds('orders_archive', 'id', 'id')),
  ].sort((a, b) => (a < b ? -1 : 1));
  const [first, last] = [ids[0], ids.at(-1)];
  return first === undefined || last === undefined ? null : { saleId, first: String(first), last: String(last) };
}

const ofSale = ({ saleId, first, last }: OrderIds) =>
  knex.raw(
    `r.order_id BETWEEN ? AND ? AND (EXISTS (SELECT 1 FROM orders AS o WHERE o.id = r.order_id AND o.sale_id = ?)
      OR EXISTS (SELECT 1 FROM orders_archive AS o WHERE o.id = r.order_id AND o.sale_id = ?))`,
    [bigint(first), bigint(last), bigint(saleId), bigint(saleId)],
  );

const columnsOf = (...columns: readonly string[]): string[] => columns.map((name) => `r.${name}`);

async function listOwed(
  pool: MysqlPool,
  { state }: RefundFilter,
  ids: OrderIds | null,
  { after, max }: RefundPage,
): Promise<StoredRefund[] | null> {
  let page = knex
    .from('refunds as r')
    .select<StoredRow[]>(...columnsOf(...STORED_COLUMNS))
    .where(withoutUndefined({ 'r.state': state }));
  if (ids !== null) page = page.whereRaw(ofSale(ids));
  if (after !== undefined) {
    const [place] = await select(pool, knex('refunds').select('created_at').where({ payment_id: after }));
    if (place === undefined) return null;
    // An index can follow the first condition. The second leaves out the rows of the previous page.
    const since = place.created_at;
    page = page.where('r.created_at', '>=', since).whereNot((had) => {
      void had.where({ 'r.created_at': since }).where('r.payment_id', '<=', after);
    });
  }
  return (await select(pool, page.orderBy(['r.created_at', 'r.payment_id']).limit(max))).map((row) => storedOf(row));
}

async function listOrdered(
  pool: MysqlPool,
  { state }: RefundFilter,
  ids: OrderIds | null,
  afterRefundId: string,
  max: number,
): Promise<StoredRefund[]> {
  const follower = knex.raw(
    `(SELECT a.id FROM order_refunds AS a WHERE a.order_id = r.order_id AND a.\`key\` = CONCAT(?, r.id)) AS followed_by`,
    [keyAfter('')],
  );
  const page = knex
    .from('order_refunds as r')
    .select<(StoredRow & { readonly id: string; readonly followed_by: string | null })[]>(
      ...columnsOf('id', ...STORED_COLUMNS),
      follower,
    )
    .where(withoutUndefined({ 'r.state': state }))
    .where('r.id', '>', bigint(afterRefundId));
  if (ids !== null) void page.whereRaw(ofSale(ids));
  const rows = await select(pool, page.orderBy('r.id').limit(max));
  return rows.map((row) => storedOf(row, { refundId: row.id, followedBy: row.followed_by }));
}

function takeOn(pool: MysqlPool, paymentId: string, actor: string): Promise<TakeOnOutcome> {
  const ofPayment = knex('refunds')
    .select(...STORED_COLUMNS)
    .where({ payment_id: paymentId });
  return pool.transaction(async (tx) => {
    const [row] = await select(tx, ofPayment.clone().forUpdate());
    if (row === undefined) return { outcome: 'not_found' };
    if (row.state === 'refunded') return { outcome: 'already_refunded', refund: storedOf(row) };
    const leased = knex('refunds')
      .select('payment_id')
      .where({ payment_id: paymentId })
      .whereRaw(`NOT ${waitOver('leased_until', PAUSE_MAX_MS)}`);
    if ((await select(tx, leased)).length > 0) return { outcome: 'being_asked', refund: storedOf(row) };
    await markRefunded(tx, paymentId);
    const { state, attempts, lastError, orderId, amountCents } = storedOf(row);
    const before = { state, attempts, lastError };
    const after = { state: 'refunded', orderId, amountCents };
    await insertAudit(tx, { actor, action: 'refund.claimed', subject: `refund:${paymentId}`, before, after });
    const [changed] = await select(tx, ofPayment);
    return { outcome: 'done', refund: storedOf(changed ?? row) };
  });
}

type StoredRow = Columns<OrderRefundRow, typeof STORED_COLUMNS>;

const storedOf = (
  row: StoredRow,
  ofOrder: { readonly refundId: string | null; readonly followedBy: string | null } = {
    refundId: null,
    followedBy: null,
  },
): StoredRefund => ({
  ...ofOrder,
  paymentId: row.payment_id,
  orderId: row.order_id,
  amountCents: Number(row.amount_cents),
  reason: row.reason,
  state: row.state,
  attempts: row.attempts,
  lastError: row.last_error,
  createdAtMs: row.created_at.getTime(),
  updatedAtMs: row.updated_at.getTime(),
});
