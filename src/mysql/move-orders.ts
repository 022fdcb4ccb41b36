import { assert, OperationalError } from '../core/errors.js';
import { groupBy } from '../core/group-by.js';
import { compareIds } from '../core/ids.js';
import { mayMove, stateOf, statesBefore, storedAs, type OrderState } from '../core/order.js';
import { homeBucket } from '../core/bucket.js';
import type {
  MetadataTexts,
  MoneyMove,
  OrderMove,
  OrdersMoved,
  OutboxKind,
  PurchaseMove,
} from '../core/ports/outbox.js';
import type { Release } from '../core/ports/batch-store.js';
import type { OrderTable } from './both-tables.js';
import { freeReserved, redeemReserved } from './coupon-codes.js';
import { execute, knex, now, select } from './knex.js';
import type { Transaction } from './pool.js';
import type { Columns, OfSale, OrderRow, OutboxTableRow } from './tables.js';

export const LOCKED_COLUMNS = [
  'id',
  'sale_id',
  'user_id',
  'request_id',
  'quantity',
  'amount_cents',
  'state',
  'after_paid',
  'refunded_cents',
] as const satisfies (keyof OrderRow)[];
/** Joins the metadata, because Vitess has no correlated subqueries. Locks it after the order, as the archive does. */
export function lockable(table: OrderTable, index?: 'PRIMARY' | 'expiry') {
  const noted = table === 'orders' ? 'order_metadata' : 'order_metadata_archive';
  return knex
    .from(index === undefined ? table : knex.raw('?? FORCE INDEX (??)', [table, index]))
    .leftJoin(`${noted} as n`, 'n.order_id', `${table}.id`)
    .select<LockedOrder[]>(...LOCKED_COLUMNS.map((column) => `${table}.${column}`), 'n.metadata')
    .forUpdate();
}
export type LockedOrder = Columns<OrderRow, typeof LOCKED_COLUMNS> & { readonly metadata: string | null };

export interface LockedRow {
  readonly order: LockedOrder;
  readonly table: OrderTable;
}

/** Locks an order. Reads the archive second, so it finds an order that is moving. Archived money may still move. */
export async function lockOrder(tx: Transaction, orderId: string): Promise<LockedRow | undefined> {
  for (const table of ['orders', 'orders_archive'] as const) {
    const [order] = await select(tx, lockable(table).where({ id: orderId }));
    if (order !== undefined) return { order, table };
  }
  return undefined;
}

/** The `sales` row is missing or counts fewer units than its orders have. I1 is then broken. */
export class SaleOutOfStep extends OperationalError {
  readonly saleId: string;

  constructor(saleId: string) {
    super('mysql', `sale ${saleId} counts fewer units sold than its orders have`, { retryable: false });
    this.name = 'SaleOutOfStep';
    this.saleId = saleId;
  }
}

/** Writes ids as numbers, because some versions compare a list of texts differently. */
export function idIn(ids: readonly string[], column: 'id' | 'order_id' = 'id'): string {
  assert(
    ids.every((id) => /^[0-9]{1,20}$/.test(id)),
    'an id is a decimal number',
  );
  return `${column} IN (${ids.join(',')})`;
}

/**
 * Moves orders and writes the outbox, then `sales.sold`. The `sales` rows come last, by id, as in the writer, so that
 * the hot row is locked only for one round trip and the commit.
 * @param orders at least one, all locked and allowed to move
 * @param discountCents discount of the coupon to redeem, for one paid order; if absent, coupons become free
 * @throws SaleOutOfStep, MysqlError
 */
export async function moveOrders(
  tx: Transaction,
  orders: readonly LockedOrder[],
  move: PurchaseMove,
  discountCents = 0,
): Promise<void> {
  const ids = orders.map(({ id }) => id);
  const locked = knex('orders').whereRaw(idIn(ids));
  const paid = discountCents === 0 ? {} : { amount_cents: knex.raw('amount_cents - ?', [discountCents]) };
  const changes = move === 'paid' ? { state: move, paid_at: now(), ...paid } : { state: move };
  const { affectedRows } = await execute(tx, locked.whereIn('state', statesBefore(move)).update(changes));
  assert(affectedRows === orders.length, `${affectedRows} of ${orders.length} locked orders moved to ${move}`);
  await (discountCents === 0 ? freeReserved(tx, ids) : redeemReserved(tx, ids));

  const sales = groupBySale(orders);
  await insertOutbox(tx, sales, move, move === 'paid' ? null : await bucketsOf(tx, [...sales.keys()]));
  if (move !== 'paid') await takeFromSold(tx, sales); // paid units stay sold
}

/**
 * Adds the missing outbox rows of an order that someone ended by hand, and frees its coupons. Keeps `sales.sold`.
 * @param order locked, in the state `move`
 * @param outboxId number of the only row, if that row was deleted
 * @throws SaleOutOfStep, MysqlError
 */
export async function announceEnded(
  tx: Transaction,
  order: LockedOrder,
  move: 'cancelled' | 'expired',
  kinds: readonly EndedKind[],
  outboxId: string | null,
): Promise<void> {
  assert(outboxId === null || kinds.length === 1, `row ${outboxId} has one kind`);
  assert(stateOf(order.state, order.after_paid) === move, `order ${order.id} is ${order.state}, not ${move}`);
  await freeReserved(tx, [order.id]);
  const sales = groupBySale([order]);
  await insertOutbox(tx, sales, move, await bucketsOf(tx, [order.sale_id]), kinds, outboxId);
}

const MONEY_MOVES: Record<MoneyMove, OrderState> = {
  refunding: 'refunding',
  refunded: 'refunded',
  returned: 'returned',
  refund_failed: 'paid',
  disputed: 'disputed',
  dispute_won: 'paid',
};

/**
 * Moves the money of paid orders. Only a returned order gives its units back, like a cancelled order.
 * @param table orders in the archive give no units back
 * @param orders at least one, all locked, in one state that may move
 * @param changes `to`: an unusual new state; `refundedCents`: the new refunded sums
 * @throws SaleOutOfStep, MysqlError
 */
export async function moveMoney(
  tx: Transaction,
  table: OrderTable,
  orders: readonly LockedOrder[],
  move: MoneyMove,
  changes: { readonly to?: OrderState; readonly refundedCents?: number } = {},
): Promise<void> {
  const { to = MONEY_MOVES[move], refundedCents } = changes;
  const [state, afterPaid] = storedAs(to);
  for (const order of orders) {
    const from = stateOf(order.state, order.after_paid);
    assert(from === to ? to === 'refunded' : mayMove(from, to), `order ${order.id} cannot move from ${from} to ${to}`);
  }
  const sum = refundedCents === undefined ? {} : { refunded_cents: refundedCents === 0 ? null : String(refundedCents) };
  const before = knex(table as 'orders')
    .whereRaw(idIn(orders.map(({ id }) => id)))
    .where({ state: 'paid' });
  const { affectedRows } = await execute(
    tx,
    before.update({ state, after_paid: afterPaid, updated_at: now(), ...sum }),
  );
  assert(affectedRows === orders.length, `${affectedRows} of ${orders.length} locked orders moved to ${to}`);

  const sales = groupBySale(orders);
  const buckets = to === 'returned' ? await bucketsOf(tx, [...sales.keys()]) : null;
  await insertOutbox(tx, sales, move, buckets);
  if (to === 'returned') await takeFromSold(tx, sales);
}

/** Subtracts the units of ended orders from `sales.sold`. @throws SaleOutOfStep */
async function takeFromSold(tx: Transaction, sales: ReadonlyMap<string, readonly LockedOrder[]>): Promise<void> {
  for (const [saleId, ofSale] of sales) {
    const units = ofSale.reduce((sum, { quantity }) => sum + quantity, 0);
    const enough = knex('sales').where({ id: saleId }).where('sold', '>=', units);
    const lowered = await execute(tx, enough.update({ sold: knex.raw('sold - ?', [units]) }));
    if (lowered.affectedRows !== 1) throw new SaleOutOfStep(saleId);
  }
}

/** Groups orders by sale, sorted by sale id. */
function groupBySale(orders: readonly LockedOrder[]): Map<string, LockedOrder[]> {
  const inOrder = [...orders].sort((a, b) => compareIds(a.sale_id, b.sale_id));
  return groupBy(inOrder, ({ sale_id: saleId }) => saleId);
}

/** Reads the number of buckets per sale, without a lock. */
async function bucketsOf(tx: Transaction, saleIds: readonly string[]): Promise<Map<string, number>> {
  const rows = await select(tx, knex('sales').select('id', 'buckets').whereIn('id', saleIds));
  return new Map(rows.map(({ id, buckets }) => [id, buckets]));
}

const ENDED_KINDS = ['orders_moved', 'release'] as const satisfies readonly OutboxKind[];
export type EndedKind = (typeof ENDED_KINDS)[number];

/** @param buckets null if no units go back. @param kinds only these rows. @param outboxId null for new numbers */
async function insertOutbox(
  tx: Transaction,
  sales: ReadonlyMap<string, readonly LockedOrder[]>,
  move: OrderMove,
  buckets: ReadonlyMap<string, number> | null,
  kinds: readonly EndedKind[] = ENDED_KINDS,
  outboxId: string | null = null,
): Promise<void> {
  const rows: Pick<OutboxTableRow & OfSale, 'kind' | 'key' | 'sale_id' | 'payload'>[] = [];
  for (const [saleId, ofSale] of sales) {
    const orders = ofSale.map(({ id }) => id);
    const key = orders[0] ?? '';
    const metadata = metadataByOrder(ofSale);
    const moved: OrdersMoved = metadata === null ? { move, saleId, orders } : { move, saleId, orders, metadata };
    rows.push({ kind: 'orders_moved', key, sale_id: saleId, payload: JSON.stringify(moved) });
    if (buckets === null) continue;
    const bucketCount = buckets.get(saleId);
    if (bucketCount === undefined) throw new SaleOutOfStep(saleId);
    const releases = ofSale.map((order): Release => ({
      saleId,
      bucket: homeBucket(order.user_id, bucketCount),
      userId: order.user_id,
      requestId: order.request_id,
      orderId: order.id,
      batchId: '',
      withUnits: true,
    }));
    rows.push({ kind: 'release', key, sale_id: saleId, payload: JSON.stringify(releases) });
  }
  const wanted = rows.filter(({ kind }) => kinds.some((one) => one === kind));
  await execute(
    tx,
    knex('outbox').insert(outboxId === null ? wanted : wanted.map((row) => ({ id: outboxId, ...row }))),
  );
}

/** Null if no order has metadata. */
export function metadataByOrder(orders: readonly LockedOrder[]): MetadataTexts | null {
  const noted = orders.flatMap(({ id, metadata }) => (metadata === null ? [] : [[id, metadata] as const]));
  return noted.length === 0 ? null : Object.fromEntries(noted);
}
