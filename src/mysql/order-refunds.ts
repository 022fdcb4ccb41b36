import { isOrderId } from '../core/ids.js';
import { isUnpaid, mayMove, stateOf, type OrderState } from '../core/order.js';
import type { Clock } from '../core/ports/clock.js';
import type {
  LeasedOrderRefund,
  OrderRefund,
  OrderRefunds,
  RefundOrdered,
  RefundWish,
} from '../core/ports/order-refunds.js';
import { insertAudit } from './audit-log.js';
import { findInBoth, fromOrders, type OrderTable } from './both-tables.js';
import { bigint, execute, inMs, knex, PAUSE_MAX_MS, select, waitOver } from './knex.js';
import { lockOrder, moveMoney, moveOrders, type LockedOrder, type LockedRow } from './move-orders.js';
import type { MysqlPool, Statements, Transaction } from './pool.js';
import { currenciesOfSales } from './shown-orders.js';
import { retryConflicts } from './retry-conflicts.js';
import type { OrderRefundRow } from './tables.js';
import { COLUMNS, newRefund, paymentsOf, refundOf, refundsOf } from './order-refund-rows.js';
import { voidNext } from './void-orders.js';

const ERROR_MAX = 1000;
/** Remains if a keeper dies while it asks: a person should then ask the provider before paying. */
const ASKED = 'a keeper asked the provider, and no answer was recorded';

/**
 * Refunds of paid orders in MySQL. Each transaction locks the order before its refunds. The lock of the order decides
 * which of two programs moves it.
 */
export function createOrderRefunds(pool: MysqlPool, { clock }: { readonly clock: Clock }): OrderRefunds {
  const transaction = <T>(work: (tx: Transaction) => Promise<T>): Promise<T> =>
    retryConflicts(clock, () => pool.transaction(work));
  return {
    async order(orderId, wish, actor) {
      return isOrderId(orderId) ? transaction((tx) => order(tx, orderId, wish, actor)) : { outcome: 'not_found' };
    },

    async cancel(orderId, reason, actor) {
      if (!isOrderId(orderId)) return 'not_found';
      return transaction(async (tx) => {
        const locked = await lockOrder(tx, orderId);
        if (locked === undefined) return 'not_found';
        const state = shownState(locked.order);
        if (state === 'cancelled') return 'cancelled';
        if (!isUnpaid(state)) return { state };
        await moveOrders(tx, [locked.order], 'cancelled');
        const entry = { before: { state }, after: { state: 'cancelled', reason } };
        await insertAudit(tx, { actor, action: 'order.cancelled', subject: `order:${orderId}`, ...entry });
        return 'cancelled';
      });
    },

    async refundsOf(orderId) {
      return isOrderId(orderId) ? refundsOf(pool, orderId) : [];
    },

    voidNext: (saleId, after, wish, actor) => voidNext(pool, transaction, saleId, after, wish, actor),

    lease: (max, leaseMs) => lease(pool, max, leaseMs),

    settle: (refundId) =>
      transaction(async (tx) => {
        const due = await lockDue(tx, refundId);
        if (due === null) return false;
        await settle(tx, due);
        return true;
      }),

    async refuse(refundId, error) {
      await transaction(async (tx) => {
        const due = await lockDue(tx, refundId);
        if (due !== null) await fail(tx, due, error);
      });
    },

    async postpone({ refundId, attempts }, delayMs, error) {
      const changes = { available_at: inMs(delayMs), leased_until: null, last_error: error.slice(0, ERROR_MAX) };
      await execute(pool, knex('order_refunds').where({ id: refundId, state: 'due', attempts }).update(changes));
    },

    takeOn: (paymentId, actor) =>
      transaction(async (tx) => {
        const [found] = await select(
          tx,
          knex('order_refunds').select('id').where({ payment_id: paymentId, state: 'due' }),
        );
        const due = found === undefined ? null : await lockDue(tx, found.id);
        if (due === null) return { outcome: 'not_found' };
        const refund = refundOf(due.refund);
        const leased = knex('order_refunds')
          .select('id')
          .where({ id: refund.refundId })
          .whereRaw(`NOT ${waitOver('leased_until', PAUSE_MAX_MS)}`);
        if ((await select(tx, leased)).length > 0) return { outcome: 'being_asked', refund };
        await settle(tx, due);
        const { orderId, amountCents, attempts, lastError } = refund;
        const entry = {
          before: { state: 'due', attempts, lastError },
          after: { state: 'refunded', orderId, amountCents },
        };
        await insertAudit(tx, { actor, action: 'refund.taken_on', subject: `refund:${paymentId}`, ...entry });
        return { outcome: 'done', refund: { ...refund, state: 'refunded' } };
      }),

    refundedElsewhere: (paymentId, totalCents, currency) =>
      transaction((tx) => refundedElsewhere(tx, paymentId, totalCents, currency)),

    cameBack: (paymentId, refundId, detail) => transaction((tx) => cameBack(tx, paymentId, refundId, detail)),

    async disputed(paymentId, amountCents, word, subject) {
      await transaction((tx) => disputed(tx, paymentId, amountCents, word, subject));
    },
  };
}

const shownState = ({ state, after_paid: afterPaid }: LockedOrder): OrderState => stateOf(state, afterPaid);
const refundedOf = ({ refunded_cents: cents }: LockedOrder): number => Number(cents ?? 0);
const leftOf = (row: LockedOrder): number => Number(row.amount_cents) - refundedOf(row);

async function order(tx: Transaction, orderId: string, wish: RefundWish, actor: string): Promise<RefundOrdered> {
  const locked = await lockOrder(tx, orderId);
  if (locked === undefined) return { outcome: 'not_found' };
  const { order: row, table } = locked;
  const refunds = await refundsOf(tx, orderId);
  const known = wish.key === undefined ? undefined : refunds.find(({ key }) => key === wish.key);
  if (known !== undefined) return repeated(known, wish);
  const state = shownState(row);
  const leftCents = leftOf(row);
  const due = refunds.find((one) => one.state === 'due') ?? null;
  if (due !== null) {
    const isSame = wish.key === undefined && wish.amountCents === undefined && due.amountCents === leftCents;
    return { outcome: isSame ? 'refunding' : 'in_progress', refund: due };
  }
  const isWhole = wish.amountCents === undefined;
  if (state === 'returned' || (state === 'refunded' && leftCents === 0)) {
    return isWhole ? { outcome: 'refunded', refund: refunds.at(-1) ?? null } : { outcome: 'too_much', leftCents: 0 };
  }
  if (!mayMove(state, 'refunding')) return { outcome: 'wrong_state', state };
  const amountCents = wish.amountCents ?? leftCents;
  if (amountCents > leftCents) return { outcome: 'too_much', leftCents };
  if (wish.restock && (await isClosed(tx, row.sale_id))) return { outcome: 'sale_closed' };
  const paymentId = await paymentOf(tx, orderId);
  if (paymentId === null) return { outcome: 'wrong_state', state };
  await execute(tx, knex('order_refunds').insert(newRefund({ ...wish, order: row, paymentId, amountCents, actor })));
  const refund = (await refundsOf(tx, orderId)).at(-1) ?? null;
  await moveMoney(tx, table, [row], 'refunding');
  const after = {
    state: 'refunding',
    amountCents,
    restock: wish.restock,
    reason: wish.reason,
    refundId: refund?.refundId,
  };
  await insertAudit(tx, { actor, action: 'order.refunded', subject: `order:${orderId}`, before: { state }, after });
  return { outcome: 'refunding', refund };
}

function repeated(refund: OrderRefund, { amountCents, restock }: RefundWish): RefundOrdered {
  const isOther = (amountCents !== undefined && amountCents !== refund.amountCents) || restock !== refund.restock;
  if (isOther) return { outcome: 'key_conflict' };
  const words = { due: 'refunding', refunded: 'refunded', failed: 'refund_failed' } as const;
  return { outcome: words[refund.state], refund };
}

/** Returns the payment that paid the order: the payment that owes nothing back. */
async function paymentOf(tx: Statements, orderId: string): Promise<string | null> {
  return (await paymentsOf(tx, [orderId])).get(orderId) ?? null;
}

/** Whether the sale sells nothing any more. The lock keeps it from being closed before the units are back. */
async function isClosed(tx: Transaction, saleId: string): Promise<boolean> {
  const [sale] = await select(tx, knex('sales').select('state').where({ id: saleId }).forUpdate());
  return sale === undefined || sale.state === 'closed';
}

interface DueRefund extends LockedRow {
  readonly refund: OrderRefundRow;
}

/** Locks a due refund and its order, the order first. */
async function lockDue(tx: Transaction, refundId: string): Promise<DueRefund | null> {
  const byId = knex('order_refunds')
    .select(...COLUMNS)
    .where({ id: refundId });
  const [found] = await select(tx, byId.clone());
  if (found === undefined) return null;
  const locked = await lockOrder(tx, found.order_id);
  const [refund] = await select(tx, byId.forUpdate());
  if (locked === undefined || refund?.state !== 'due') return null;
  return { ...locked, refund };
}

const endOf = (refund: OrderRefundRow, state: 'refunded' | 'failed', error: string | null) =>
  knex('order_refunds').where({ id: refund.id }).update({ state, leased_until: null, last_error: error });

async function settle(tx: Transaction, { order: row, table, refund }: DueRefund): Promise<void> {
  const refundedCents = refundedOf(row) + Number(refund.amount_cents);
  const isWhole = refundedCents >= Number(row.amount_cents);
  const returns = isWhole && refund.restock === 1 && table === 'orders' && !(await isClosed(tx, row.sale_id));
  await execute(tx, endOf(refund, 'refunded', null));
  await moveMoney(tx, table, [row], returns ? 'returned' : 'refunded', { refundedCents });
}

async function fail(tx: Transaction, { order: row, table, refund }: DueRefund, error: string): Promise<void> {
  await execute(tx, endOf(refund, 'failed', error.slice(0, ERROR_MAX)));
  await moveMoney(tx, table, [row], 'refund_failed', { to: refundedOf(row) > 0 ? 'refunded' : 'paid' });
}

/** Leases due refunds. The locks last for these statements, so no money moves under a lock. */
function lease(pool: MysqlPool, max: number, leaseMs: number): Promise<LeasedOrderRefund[]> {
  return pool.transaction(async (tx) => {
    const due = knex('order_refunds')
      .select('id', 'order_id', 'payment_id', 'amount_cents', 'attempts')
      .where({ state: 'due' })
      .whereRaw(waitOver('available_at', Math.max(leaseMs, PAUSE_MAX_MS)));
    const rows = await select(tx, due.orderBy('available_at').limit(max).forUpdate().skipLocked());
    if (rows.length === 0) return [];
    const until = inMs(leaseMs);
    const changes = { attempts: knex.raw('attempts + 1'), available_at: until, leased_until: until, last_error: ASKED };
    const ids = rows.map(({ id }) => id);
    await execute(tx, knex('order_refunds').whereIn('id', ids.map(bigint)).update(changes));
    const sales = await salesOf(
      tx,
      rows.map((row) => row.order_id),
    );
    const currencies = await currenciesOfSales(
      tx,
      [...sales.values()].map((sale_id) => ({ sale_id })),
    );
    return rows.map((row) => ({
      refundId: row.id,
      orderId: row.order_id,
      paymentId: row.payment_id,
      amountCents: Number(row.amount_cents),
      currency: currencies.get(sales.get(row.order_id) ?? '') ?? '',
      attempts: row.attempts + 1,
    }));
  });
}

async function salesOf(tx: Statements, orderIds: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const find = (table: OrderTable, ids: readonly string[]) =>
    select(tx, fromOrders(table).select('id', 'sale_id').whereIn('id', ids.map(bigint)));
  return new Map((await findInBoth(orderIds, find, ({ id }) => id)).map((row) => [row.id, row.sale_id]));
}

/** Locks the order that a payment paid. Null if the payment is unknown, or pays no order. */
async function lockPaid(tx: Transaction, paymentId: string): Promise<LockedRow | null> {
  for (const table of ['payments', 'payments_archive'] as const) {
    const [row] = await select(
      tx,
      knex(table as 'payments')
        .select('order_id')
        .where({ payment_id: paymentId }),
    );
    if (row === undefined) continue;
    const locked = await lockOrder(tx, row.order_id);
    return locked !== undefined && (await paymentOf(tx, row.order_id)) === paymentId ? locked : null;
  }
  return null;
}

async function refundedElsewhere(
  tx: Transaction,
  paymentId: string,
  totalCents: number,
  currency: string,
): Promise<'known' | 'recorded' | 'does_not_fit'> {
  const locked = await lockPaid(tx, paymentId);
  if (locked === null) return 'does_not_fit';
  const { order: row, table } = locked;
  const currencies = await currenciesOfSales(tx, [row]);
  if (currencies.get(row.sale_id) !== currency || totalCents > Number(row.amount_cents)) return 'does_not_fit';
  const dueCents = (await refundsOf(tx, row.id)).reduce(
    (sum, { state, amountCents }) => sum + (state === 'due' ? amountCents : 0),
    0,
  );
  if (totalCents <= refundedOf(row) + dueCents) return 'known';
  const state = shownState(row);
  if (dueCents > 0 || (state !== 'paid' && state !== 'refunded')) return 'does_not_fit';
  const amountCents = totalCents - refundedOf(row);
  await insertDone(tx, { order: row, paymentId, amountCents, reason: 'refunded at the provider' });
  await moveMoney(tx, table, [row], 'refunded', { refundedCents: totalCents });
  return 'recorded';
}

/** Records money that went back without us. */
async function insertDone(
  tx: Transaction,
  done: Pick<OrderRefund, 'paymentId' | 'amountCents' | 'reason'> & { readonly order: LockedOrder },
): Promise<void> {
  const row = newRefund({ ...done, restock: false, actor: 'provider' });
  await execute(tx, knex('order_refunds').insert({ ...row, state: 'refunded' }));
}

async function cameBack(tx: Transaction, paymentId: string, refundId: string, detail: string): Promise<boolean> {
  if (!/^[0-9]{1,20}$/.test(refundId)) return false;
  const locked = await lockPaid(tx, paymentId);
  if (locked === null) return false;
  const { order: row, table } = locked;
  const ofPayment = knex('order_refunds')
    .select(...COLUMNS)
    .where({ id: bigint(refundId), payment_id: paymentId });
  const [refund] = await select(tx, ofPayment.forUpdate());
  if (refund === undefined || refund.state === 'failed') return false;
  if (refund.state === 'due') {
    await fail(tx, { ...locked, refund }, detail);
    return true;
  }
  await execute(tx, endOf(refund, 'failed', detail.slice(0, ERROR_MAX)));
  const refundedCents = Math.max(0, refundedOf(row) - Number(refund.amount_cents));
  const state = shownState(row);
  // A further refund is due, or the units may be with others: the order keeps its state, and its sum is corrected.
  if (state !== 'refunded') {
    const byId = fromOrders(table).where({ id: row.id });
    await execute(tx, byId.update({ refunded_cents: refundedCents === 0 ? null : String(refundedCents) }));
    return true;
  }
  await moveMoney(tx, table, [row], 'refund_failed', { to: refundedCents > 0 ? 'refunded' : 'paid', refundedCents });
  return true;
}

async function disputed(
  tx: Transaction,
  paymentId: string,
  amountCents: number,
  word: 'open' | 'won' | 'lost',
  subject: string,
): Promise<void> {
  const locked = await lockPaid(tx, paymentId);
  if (locked === null) return;
  const { order: row, table } = locked;
  const state = shownState(row);
  if (word === 'open' && state === 'paid') {
    const closed = knex('payment_cases').select('id').where({ kind: 'disputed', subject, state: 'closed' });
    if ((await select(tx, closed)).length === 0) await moveMoney(tx, table, [row], 'disputed');
    return;
  }
  if (word === 'won' && state === 'disputed') return moveMoney(tx, table, [row], 'dispute_won');
  if (word !== 'lost' || (state !== 'disputed' && state !== 'paid')) return;
  const lostCents = Math.min(leftOf(row), amountCents);
  const refundedCents = refundedOf(row) + lostCents;
  await insertDone(tx, { order: row, paymentId, amountCents: lostCents, reason: 'the dispute was lost' });
  await moveMoney(tx, table, [row], 'refunded', { refundedCents });
}
