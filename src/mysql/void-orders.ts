import type { VoidAnswer, VoidStep, VoidWish } from '../core/ports/order-refunds.js';
import type { OrderCursor } from '../core/ports/reconcile-repository.js';
import { insertAudit } from './audit-log.js';
import type { OrderTable } from './both-tables.js';
import { auditFreed, type CouponCause } from './coupon-codes.js';
import { execute, knex, select } from './knex.js';
import { idIn, lockable, LOCKED_COLUMNS, moveMoney, moveOrders, type LockedOrder } from './move-orders.js';
import { newRefund, paymentsOf } from './order-refund-rows.js';
import { nextOrders } from './order-ranges.js';
import type { MysqlPool, Transaction } from './pool.js';
import type { OrderRow } from './tables.js';

/** Orders per transaction. One takes some tens of ms, and no purchase or payment waits longer than that. */
const ORDERS_PER_STEP = 500;

/** The lists of orders that a void goes through, one after the other. */
const LISTS = {
  unpaid: { state: 'pending_payment' },
  paid: { state: 'paid', after_paid: null },
  part: { state: 'paid', after_paid: 'refunded' },
} as const satisfies Record<string, Partial<Pick<OrderRow, 'state' | 'after_paid'>>>;
type List = keyof typeof LISTS;

const PLACE = /^(unpaid|paid|part)\.([0-9]{1,20})-([0-9]{1,20})$/;

/** A position, `<list>.<first>-<read>`: the name of a list, and the cursor within it. */
interface Place {
  readonly list: List;
  readonly from: OrderCursor | null;
}

function placeOf(after: string | null, lists: readonly List[]): Place | null {
  const [first] = lists;
  if (after === null) return first === undefined ? null : { list: first, from: null };
  const [, word, afterFirst, readTo] = PLACE.exec(after) ?? [];
  const list = lists.find((one) => one === word);
  return list === undefined ? null : { list, from: { afterFirst: afterFirst ?? '0', readTo: readTo ?? '0' } };
}

type Transactional = <T>(work: (tx: Transaction) => Promise<T>) => Promise<T>;

/** Cancels or refunds the next orders of a sale, in one transaction. */
export async function voidNext(
  pool: MysqlPool,
  transaction: Transactional,
  saleId: string,
  after: string | null,
  wish: VoidWish,
  actor: string,
): Promise<VoidAnswer> {
  const [sale] = await select(pool, knex('sales').select('state').where({ id: saleId }));
  if (sale === undefined) return { outcome: 'not_found' };
  if (!wish.dryRun && sale.state !== 'paused' && sale.state !== 'closed') return { outcome: 'sale_open' };
  const lists: List[] = [
    ...(wish.unpaid ? ['unpaid' as const] : []),
    ...(wish.refundAll ? (['paid', 'part'] as const) : []),
  ];
  const place = placeOf(after, lists);
  if (place === null) return { outcome: 'no_place' };
  const { list, from } = place;
  const reading = { columns: LOCKED_COLUMNS, maxOrders: ORDERS_PER_STEP, where: LISTS[list], limit: ORDERS_PER_STEP };
  const { rows, next } = await nextOrders<Found>(pool, saleId, from, reading);
  const moved = wish.dryRun ? rows : await transaction((tx) => move(tx, list, rows, wish, { saleId, actor }));
  const following = lists[lists.indexOf(list) + 1];
  const end = following === undefined ? null : `${following}.0-0`;
  return stepOf(list, moved, next === null ? end : `${list}.${next.afterFirst}-${next.readTo}`);
}

type Found = Omit<LockedOrder, 'metadata'>;

const leftOf = (row: Found): number => Number(row.amount_cents) - Number(row.refunded_cents ?? 0);
/** False if an order has been refunded and no money is left. A free order is refunded without moving money. */
const isOwed = (row: Found): boolean => row.after_paid === null || leftOf(row) > 0;

function stepOf(list: List, moved: readonly Found[], next: string | null): VoidStep {
  if (list === 'unpaid') return { outcome: 'done', cancelled: moved.length, refunding: 0, refundCents: 0, next };
  const owed = moved.filter(isOwed);
  const refundCents = owed.reduce((sum, row) => sum + leftOf(row), 0);
  return { outcome: 'done', cancelled: 0, refunding: owed.length, refundCents, next };
}

/** Moves the orders that are still in the list, and returns them. */
async function move(
  tx: Transaction,
  list: List,
  found: readonly Found[],
  { reason }: VoidWish,
  { saleId, actor }: { readonly saleId: string; readonly actor: string },
): Promise<readonly Found[]> {
  const moved: LockedOrder[] = [];
  for (const table of list === 'unpaid' ? (['orders'] as const) : (['orders', 'orders_archive'] as const)) {
    const left = found.filter(({ id }) => moved.every((one) => one.id !== id));
    const orders = left.length === 0 ? [] : await lockAll(tx, table, list, left);
    if (orders.length === 0) continue;
    moved.push(
      ...(await (list === 'unpaid'
        ? cancelAll(tx, orders, { actor, reason })
        : refundAll(tx, table, orders, reason, actor))),
    );
  }
  if (moved.length === 0) return moved;
  const after = { list, reason, orders: moved.map(({ id }) => id) };
  await insertAudit(tx, { actor, action: 'sale.voided', subject: `sale:${saleId}`, before: null, after });
  return moved;
}

function lockAll(tx: Transaction, table: OrderTable, list: List, found: readonly Found[]): Promise<LockedOrder[]> {
  const listed = lockable(table)
    .whereRaw(idIn(found.map(({ id }) => id)))
    .where(LISTS[list]);
  return select(tx, listed.orderBy('id'));
}

async function cancelAll(
  tx: Transaction,
  orders: readonly LockedOrder[],
  cause: CouponCause,
): Promise<readonly LockedOrder[]> {
  await auditFreed(
    tx,
    orders.map(({ id }) => id),
    cause,
  );
  await moveOrders(tx, orders, 'cancelled');
  return orders;
}

async function refundAll(
  tx: Transaction,
  table: OrderTable,
  orders: readonly LockedOrder[],
  reason: string,
  actor: string,
): Promise<readonly LockedOrder[]> {
  const payments = await paymentsOf(
    tx,
    orders.map(({ id }) => id),
  );
  const owed = orders.filter((order) => isOwed(order) && payments.has(order.id));
  if (owed.length === 0) return owed;
  const rows = owed.map((order) =>
    newRefund({
      order,
      paymentId: payments.get(order.id) ?? '',
      amountCents: leftOf(order),
      ...{ restock: false, reason, actor },
    }),
  );
  await execute(tx, knex('order_refunds').insert(rows));
  await moveMoney(tx, table, owed, 'refunding');
  return owed;
}
