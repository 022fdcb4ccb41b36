import { createHash } from 'node:crypto';
import { assert } from '../core/errors.js';
import { isOrderId } from '../core/ids.js';
import { isUnpaid, mayMove, stateOf, type OrderState } from '../core/order.js';
import type { Clock } from '../core/ports/clock.js';
import type {
  OrderRefund,
  OrderRefunds,
  RefundAgain,
  RefundedElsewhere,
  RefundOrdered,
  RefundWish,
} from '../core/ports/order-refunds.js';
import { insertAudit } from './audit-log.js';
import { findInBoth, fromOrders, type OrderTable } from './both-tables.js';
import { auditFreed, freeRedeemed } from './coupon-codes.js';
import { bigint, execute, inMs, knex, PAUSE_MAX_MS, select, waitOver } from './knex.js';
import { lockOrder, moveMoney, moveOrders, type LockedOrder, type LockedRow } from './move-orders.js';
import type { MysqlPool, Statements, Transaction } from './pool.js';
import { currenciesOfSales } from './shown-orders.js';
import { noteCase } from './payment-cases.js';
import { ASKED } from './refund-repository.js';
import { retryConflicts } from './retry-conflicts.js';
import type { OrderRefundRow } from './tables.js';
import { keyAfter, newRefund, paymentsOf, refundOf, refundsOf } from './order-refund-rows.js';
import { voidNext } from './void-orders.js';

const ERROR_MAX = 1000;
const REFUND_ID = /^[1-9][0-9]{0,18}$/;

/** Each transaction locks the order before its refunds, so the lock of the order decides between programs. */
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
        await auditFreed(tx, [orderId], { actor, reason });
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

    /** The locks last only for these statements, so no money moves while a row is locked. */
    lease(max, leaseMs) {
      return pool.transaction(async (tx) => {
        const due = knex('order_refunds')
          .select('id', 'order_id', 'payment_id', 'amount_cents', 'attempts')
          .where({ state: 'due' })
          .whereRaw(waitOver('available_at', Math.max(leaseMs, PAUSE_MAX_MS)));
        const rows = await select(tx, due.orderBy('available_at').limit(max).forUpdate().skipLocked());
        if (rows.length === 0) return [];
        const until = inMs(leaseMs);
        const changes = {
          attempts: knex.raw('attempts + 1'),
          available_at: until,
          leased_until: until,
          last_error: ASKED,
        };
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
    },

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
        return found === undefined ? { outcome: 'not_found' } : takeOnDue(tx, found.id, {}, actor);
      }),

    again: (refundId, reason, actor) => transaction((tx) => again(tx, refundId, reason, actor)),

    /** Claims a due refund, or orders a failed refund again and claims the new one before a keeper sees it. */
    takeOnRefund: (refundId, reason, actor) =>
      transaction(async (tx) => {
        const ordered = await again(tx, refundId, reason, actor);
        if (ordered.outcome === 'refunding') return takeOnDue(tx, ordered.refund.refundId, { reason }, actor);
        return ordered.outcome === 'refunded' ? { outcome: 'already_refunded' } : ordered;
      }),

    refundedElsewhere: (found) =>
      transaction(async (tx) => {
        const recorded = await refundedElsewhere(tx, found);
        if (recorded === 'does_not_fit') await noteCase(tx, found, 'open');
        return recorded;
      }),

    cameBack: (paymentId, refundId, detail) =>
      transaction(async (tx) => {
        if (!/^[0-9]{1,20}$/.test(refundId)) return false;
        const locked = await lockPaid(tx, paymentId);
        if (locked === null) return false;
        const { order: row, table } = locked;
        const ofPayment = knex('order_refunds')
          .select('*')
          .where({ id: bigint(refundId), payment_id: paymentId });
        const [refund] = await select(tx, ofPayment.forUpdate());
        if (refund === undefined || refund.state === 'failed') return false;
        if (refund.state === 'due') {
          await fail(tx, { ...locked, refund }, detail);
          return true;
        }
        await execute(tx, endOf(refund, 'failed', detail.slice(0, ERROR_MAX)));
        const { refundedCents } = await refundedIn(tx, row);
        const state = shownState(row);
        // Another refund is due, or other buyers may have the units, so only the sum changes.
        if (state !== 'refunded') await setRefunded(tx, locked, refundedCents);
        else await giveUpRefund(tx, table, row, refundedCents);
        return true;
      }),

    disputed: (dispute, word, caseState) =>
      transaction(async (tx) => {
        const { paymentId, amountCents, kind, subject } = dispute;
        const locked = await lockPaid(tx, paymentId);
        const isClosed = knex('payment_cases').select('id').where({ kind, subject, state: 'closed' });
        const isLate = word === 'open' && (await select(tx, isClosed)).length > 0;
        await noteCase(tx, dispute, caseState);
        if (locked === null || isLate) return;
        const { order: row, table } = locked;
        const state = shownState(row);
        const isPaid = state === 'paid' || (state === 'refunded' && leftOf(row) > 0);
        if (word === 'open') return isPaid ? moveMoney(tx, table, [row], 'disputed') : undefined;
        if (word === 'won') {
          const to = refundedOf(row) > 0 ? 'refunded' : 'paid';
          if (state !== 'disputed') return;
          await moveMoney(tx, table, [row], 'dispute_won', { to });
          return disputeAgain(tx, table, row, to, refundedOf(row));
        }
        if (!isPaid && state !== 'disputed' && state !== 'refunding') return;
        const key = lostKey(subject);
        if ((await refundsOf(tx, row.id)).some((known) => known.key === key)) return;
        const lostCents = Math.min(leftOf(row), amountCents);
        const refundedCents = refundedOf(row) + lostCents;
        await insertDone(tx, { order: row, paymentId, amountCents: lostCents, reason: 'the dispute was lost', key });
        if (state === 'refunding') return setRefunded(tx, locked, refundedCents);
        await moveMoney(tx, table, [row], 'refunded', { refundedCents });
      }),
  };
}

const shownState = ({ state, after_paid: afterPaid }: LockedOrder): OrderState => stateOf(state, afterPaid);
const refundedOf = ({ refunded_cents: cents }: LockedOrder): number => Number(cents ?? 0);
const leftOf = (row: LockedOrder): number => Math.max(0, Number(row.amount_cents) - refundedOf(row));

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
  if (leftCents === 0 && (state === 'returned' || state === 'refunded')) {
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

async function findRefund(tx: Statements, refundId: string): Promise<OrderRefund | null> {
  if (!REFUND_ID.test(refundId)) return null;
  const byId = knex('order_refunds')
    .select('order_id')
    .where({ id: bigint(refundId) });
  const [row] = await select(tx, byId);
  const refunds = row === undefined ? [] : await refundsOf(tx, row.order_id);
  return refunds.find((refund) => refund.refundId === refundId) ?? null;
}

/** Orders a failed refund again. Returns any other refund unchanged. */
async function again(tx: Transaction, refundId: string, reason: string, actor: string): Promise<RefundAgain> {
  const refund = await findRefund(tx, refundId);
  if (refund === null) return { outcome: 'not_found' };
  const { state, orderId, amountCents, restock } = refund;
  if (state !== 'failed') return { outcome: state === 'due' ? 'refunding' : 'refunded', refund };
  const answer = await order(tx, orderId, { amountCents, restock, reason, key: keyAfter(refundId) }, actor);
  assert(answer.outcome !== 'key_conflict', 'a refund that repeats a failed refund has the same amount');
  if (answer.outcome !== 'refunding' && answer.outcome !== 'refunded') return answer;
  assert(answer.refund !== null, 'a refund with a key is always returned');
  return { outcome: answer.outcome, refund: answer.refund };
}

/** Marks a due refund as paid by a person, unless a keeper is asking the provider for it at this moment. */
async function takeOnDue(
  tx: Transaction,
  refundId: string,
  why: { readonly reason?: string },
  actor: string,
): Promise<Awaited<ReturnType<OrderRefunds['takeOn']>>> {
  const due = await lockDue(tx, refundId);
  if (due === null) return { outcome: 'not_found' };
  const refund = refundOf(due.refund);
  const leased = knex('order_refunds')
    .select('id')
    .where({ id: refundId })
    .whereRaw(`NOT ${waitOver('leased_until', PAUSE_MAX_MS)}`);
  if ((await select(tx, leased)).length > 0) return { outcome: 'being_asked', refund };
  await settle(tx, due);
  const { orderId, paymentId, amountCents, attempts, lastError } = refund;
  const entry = {
    before: { state: 'due', attempts, lastError },
    after: { state: 'refunded', orderId, amountCents, ...why },
  };
  await insertAudit(tx, { actor, action: 'refund.claimed', subject: `refund:${paymentId}`, ...entry });
  return { outcome: 'done', refund: { ...refund, state: 'refunded' } };
}

/** Returns the payment that paid the order. Any other payment of the order is owed back. */
async function paymentOf(tx: Statements, orderId: string): Promise<string | null> {
  return (await paymentsOf(tx, [orderId])).get(orderId) ?? null;
}

/** Whether the sale has stopped selling for good. The lock prevents it from being closed before the units are back. */
async function isClosed(tx: Transaction, saleId: string): Promise<boolean> {
  const [sale] = await select(tx, knex('sales').select('state').where({ id: saleId }).forUpdate());
  return sale === undefined || sale.state === 'closed';
}

interface DueRefund extends LockedRow {
  readonly refund: OrderRefundRow;
}

/** Locks a due refund and its order, the order first. */
async function lockDue(tx: Transaction, refundId: string): Promise<DueRefund | null> {
  const byId = knex('order_refunds').select('*').where({ id: refundId });
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
  await execute(tx, endOf(refund, 'refunded', null));
  const { refundedCents, beyondCents } = await refundedIn(tx, row);
  const isWhole = refundedCents === Number(row.amount_cents);
  if (isWhole) await freeRedeemed(tx, row.id, refund);
  const returns = isWhole && refund.restock === 1 && table === 'orders' && !(await isClosed(tx, row.sale_id));
  await moveMoney(tx, table, [row], returns ? 'returned' : 'refunded', { refundedCents });
  if (!isWhole) await disputeAgain(tx, table, row, 'refunded', refundedCents);
  await noteBeyond(tx, refundOf(refund), beyondCents);
}

const BEYOND =
  'more than the amount went back: by this refund, and in the meantime by a dispute or a refund at the provider';

/** Opens a case for the sum that went back in excess of the amount of the order. */
async function noteBeyond(
  tx: Transaction,
  { refundId, paymentId, orderId, amountCents }: OrderRefund,
  beyondCents: number,
): Promise<void> {
  if (beyondCents === 0) return;
  const found = { paymentId, orderId, amountCents: Math.min(amountCents, beyondCents), currency: null };
  const subject = `order-refund-${refundId}`;
  await noteCase(tx, { kind: 'refunded_twice', subject, ...found, detail: BEYOND }, 'open');
}

/** A refund, a dispute and a person at the provider may together give back more than the amount. */
async function refundedIn(tx: Transaction, row: LockedOrder) {
  const refunds = await refundsOf(tx, row.id);
  const cents = sumOf(refunds, 'refunded');
  const refundedCents = Math.min(cents, Number(row.amount_cents));
  return { refundedCents, beyondCents: cents - refundedCents, last: refunds.at(-1) };
}

async function fail(tx: Transaction, { order: row, table, refund }: DueRefund, error: string): Promise<void> {
  await execute(tx, endOf(refund, 'failed', error.slice(0, ERROR_MAX)));
  await giveUpRefund(tx, table, row, refundedOf(row));
}

async function giveUpRefund(
  tx: Transaction,
  table: OrderTable,
  row: LockedOrder,
  refundedCents: number,
): Promise<void> {
  const to = refundedCents > 0 ? 'refunded' : 'paid';
  await moveMoney(tx, table, [row], 'refund_failed', { to, refundedCents });
  await disputeAgain(tx, table, row, to, refundedCents);
}

/** Makes an order disputed if the dispute began while its refund was due, or while no money was left. */
async function disputeAgain(
  tx: Transaction,
  table: OrderTable,
  row: LockedOrder,
  state: 'paid' | 'refunded',
  refundedCents: number,
): Promise<void> {
  const open = { kind: 'disputed', state: 'open', order_id: row.id } as const;
  const cases = await select(tx, knex('payment_cases').select('subject').where(open));
  if (cases.length === 0) return;
  const keys = (await refundsOf(tx, row.id)).map(({ key }) => key);
  if (cases.every(({ subject }) => keys.includes(lostKey(subject)))) return;
  const now = { ...row, after_paid: state === 'paid' ? null : state, refunded_cents: String(refundedCents) };
  await moveMoney(tx, table, [now], 'disputed');
}

async function setRefunded(tx: Transaction, { order: row, table }: LockedRow, refundedCents: number): Promise<void> {
  const sum = { refunded_cents: refundedCents === 0 ? null : String(refundedCents) };
  await execute(tx, fromOrders(table).where({ id: row.id }).update(sum));
}

async function salesOf(tx: Statements, orderIds: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const find = (table: OrderTable, ids: readonly string[]) =>
    select(tx, fromOrders(table).select('id', 'sale_id').whereIn('id', ids.map(bigint)));
  return new Map((await findInBoth(orderIds, find, ({ id }) => id)).map((row) => [row.id, row.sale_id]));
}

/** Locks the order that a payment paid. Null if the payment is unknown, or did not pay an order. */
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

const sumOf = (refunds: readonly OrderRefund[], state: OrderRefund['state']): number =>
  refunds.reduce((sum, refund) => sum + (refund.state === state ? refund.amountCents : 0), 0);

async function refundedElsewhere(
  tx: Transaction,
  { paymentId, amountCents: totalCents, currency }: RefundedElsewhere,
): Promise<'known' | 'recorded' | 'does_not_fit'> {
  const locked = await lockPaid(tx, paymentId);
  if (locked === null) return 'does_not_fit';
  const { order: row, table } = locked;
  const currencies = await currenciesOfSales(tx, [row]);
  if (currencies.get(row.sale_id) !== currency || totalCents > Number(row.amount_cents)) return 'does_not_fit';
  const all = await refundsOf(tx, row.id);
  const dueCents = sumOf(all, 'due');
  // A provider does not count money that a dispute took.
  const backCents = sumOf(
    all.filter(({ key }) => !key.startsWith(LOST)),
    'refunded',
  );
  const newCents = totalCents - backCents;
  if (newCents <= 0 || newCents === dueCents) return 'known';
  const done = { order: row, paymentId, reason: 'refunded at the provider' };
  if (dueCents > 0) {
    // A total above our due refund includes it. A smaller total does not, because a refund is never made in part.
    const amountCents = newCents > dueCents ? newCents - dueCents : newCents;
    await insertDone(tx, { ...done, amountCents });
    await setRefunded(tx, locked, (await refundedIn(tx, row)).refundedCents);
    return 'does_not_fit';
  }
  const state = shownState(row);
  if (state !== 'paid' && state !== 'refunded') return 'does_not_fit';
  await insertDone(tx, { ...done, amountCents: newCents });
  const { refundedCents, beyondCents, last } = await refundedIn(tx, row);
  assert(last !== undefined, 'the refund at the provider was inserted');
  if (refundedCents === Number(row.amount_cents)) {
    await freeRedeemed(tx, row.id, { actor: 'provider', reason: done.reason });
  }
  await moveMoney(tx, table, [row], 'refunded', { refundedCents });
  await noteBeyond(tx, last, beyondCents);
  return 'recorded';
}

/** Records money that another program gave back. */
async function insertDone(
  tx: Transaction,
  done: Pick<OrderRefund, 'paymentId' | 'amountCents' | 'reason'> & {
    readonly order: LockedOrder;
    readonly key?: string;
  },
): Promise<void> {
  const row = newRefund({ ...done, restock: false, actor: 'provider' });
  await execute(tx, knex('order_refunds').insert({ ...row, state: 'refunded' }));
}

/** Prefix of the key of the row that records a lost dispute. */
const LOST = 'dispute-';
const lostKey = (subject: string): string =>
  `${LOST}${createHash('sha256').update(subject).digest('hex').slice(0, 40)}`;
