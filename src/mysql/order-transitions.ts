import { isUnpaid, stateOf, statesBefore } from '../core/order.js';
import { isOrderId } from '../core/ids.js';
import type { Clock } from '../core/ports/clock.js';
import type { Log } from '../core/ports/log.js';
import type { CancelOutcome, OrderTransitions, Payment, PayOutcome } from '../core/ports/order-transitions.js';
import { hasCoupons, hasDiscount, reserveFitting } from './coupon-codes.js';
import { MysqlError } from './errors.js';
import { execute, knex, now, select } from './knex.js';
import { idIn, lockable, lockOrder, moveOrders, SaleOutOfStep, type LockedOrder } from './move-orders.js';
import type { MysqlPool, Transaction } from './pool.js';
import { retryConflicts } from './retry-conflicts.js';

/** A transaction takes some tens of ms, so a buyer who pays at the last moment waits no longer. */
const ORDERS_PER_TRANSACTION = 500;

type LockDue = (tx: Transaction, exceptSales: readonly string[]) => Promise<LockedOrder[]>;

/** Moves of orders in MySQL. A transaction that loses its locks is repeated as a whole. */
export function createOrderTransitions(
  pool: MysqlPool,
  { clock, log }: { readonly clock: Clock; readonly log: Log },
): OrderTransitions {
  const transaction = <T>(work: (tx: Transaction) => Promise<T>): Promise<T> =>
    retryConflicts(clock, () => pool.transaction(work));

  /** A sale out of step keeps its orders without holding up other sales. */
  const expireSome = async (lock: LockDue, outOfStep: string[]): Promise<number> => {
    for (;;) {
      try {
        return await transaction(async (tx) => expireLocked(tx, await lock(tx, outOfStep)));
      } catch (error) {
        if (!(error instanceof SaleOutOfStep) || outOfStep.includes(error.saleId)) throw error;
        outOfStep.push(error.saleId);
        log.error({ saleId: error.saleId }, 'orders cannot expire: the sale counts fewer sold units than they have');
      }
    }
  };

  return {
    async pay(orderId, payment) {
      if (!isOrderId(orderId)) return 'not_found'; // MySQL would read 12x as 12
      return retryConflicts(clock, () => recordPayment(pool, orderId, payment));
    },

    async cancel(orderId) {
      return isOrderId(orderId) ? transaction((tx) => cancel(tx, orderId)) : 'not_found';
    },

    async expire(orderIds): Promise<number> {
      const known = [...new Set(orderIds.filter(isOrderId))];
      const outOfStep: string[] = [];
      let ended = 0;
      for (let from = 0; from < known.length; from += ORDERS_PER_TRANSACTION) {
        const some = known.slice(from, from + ORDERS_PER_TRANSACTION);
        ended += await expireSome(
          (tx, exceptSales) => lockDueOf(tx, some, { nowMs: clock.nowMs(), exceptSales }),
          outOfStep,
        );
      }
      return ended;
    },

    async expireDue(max): Promise<number> {
      const outOfStep: string[] = [];
      let ended = 0;
      while (ended < max) {
        const size = Math.min(ORDERS_PER_TRANSACTION, max - ended);
        const some = await expireSome(
          (tx, exceptSales) => lockDue(tx, size, { nowMs: clock.nowMs(), exceptSales }),
          outOfStep,
        );
        ended += some;
        if (some < size) break;
      }
      return ended;
    },
  };
}

async function cancel(tx: Transaction, orderId: string): Promise<CancelOutcome> {
  const order = (await lockOrder(tx, orderId))?.order;
  if (order === undefined) return 'not_found';
  if (stateOf(order.state, order.after_paid) === 'cancelled') return 'cancelled';
  if (!isUnpaid(order.state)) return 'wrong_state';
  await moveOrders(tx, [order], 'cancelled');
  return 'cancelled';
}

/**
 * Records a payment once by its id, and pays the order. If that fails, adds a `refunds` row. Payments minus refunds
 * equal the amounts of paid orders. A person decides about `coupon_missing`, which is not recorded.
 */
async function recordPayment(pool: MysqlPool, orderId: string, payment: Payment): Promise<PayOutcome> {
  const row = { payment_id: payment.paymentId, order_id: orderId, amount_cents: String(payment.amountCents) };
  try {
    return await pool.transaction(async (tx) => {
      const order = (await lockOrder(tx, orderId))?.order;
      if (order === undefined) return 'not_found';
      const [archived] = await select(tx, paymentWithRefund('payments_archive', payment.paymentId));
      if (archived !== undefined) return outcomeBefore(archived, orderId, payment);
      const ofSale = { ...row, sale_id: order.sale_id };
      await execute(tx, knex('payments').insert(ofSale));
      const reason = await whyNot(tx, order, payment);
      if (reason === 'coupon_missing') {
        await tx.rollback();
        return reason;
      }
      if (reason === null) {
        await moveOrders(tx, [order], 'paid', Number(order.amount_cents) - payment.amountCents);
        return 'paid';
      }
      const state = payment.amountCents === 0 ? 'refunded' : 'due'; // there is no money to give back
      await execute(tx, knex('refunds').insert({ ...ofSale, reason, state }));
      return 'refund_due';
    });
  } catch (error) {
    if (!(error instanceof MysqlError) || error.kind !== 'duplicate') throw error;
    const outcome = await recordedBefore(pool, orderId, payment);
    if (outcome === null) throw error;
    return outcome;
  }
}

/**
 * Says why this payment does not pay the order, or null. A passed deadline counts once a program has expired the order.
 * The amount minus a coupon pays too: the reserved coupon, or another of the buyer, because a restore may lose a
 * reservation. A person decides about a smaller amount while coupons exist, because the copy may lack a coupon.
 */
async function whyNot(tx: Transaction, order: LockedOrder, payment: Payment): Promise<string | null> {
  if (!isUnpaid(order.state)) return order.state === 'paid' ? 'already_paid' : `order_${order.state}`;
  const [sale] = await select(tx, knex('sales').select('currency').where({ id: order.sale_id }));
  const currency = sale?.currency ?? '';
  if (payment.currency !== undefined && payment.currency !== currency) return 'wrong_currency';
  const orderCents = Number(order.amount_cents);
  const discountCents = orderCents - payment.amountCents;
  if (discountCents === 0) return null;
  if (discountCents < 0) return 'wrong_amount';
  if (await hasDiscount(tx, order.id, discountCents)) return null;
  if (await hasAttempt(tx, order.id, payment.amountCents)) return 'wrong_amount'; // its coupon was used elsewhere since
  const priced = { orderId: order.id, userId: order.user_id, amountCents: orderCents, currency };
  if (await reserveFitting(tx, priced, { key: payment.paymentId, discountCents })) return null;
  return (await hasCoupons(tx)) ? 'coupon_missing' : 'wrong_amount';
}

async function hasAttempt(tx: Transaction, orderId: string, amountCents: number): Promise<boolean> {
  const same = knex('payment_attempts').where({ order_id: orderId, amount_cents: String(amountCents) });
  return (await select(tx, same.select('key').limit(1))).length > 0;
}

/** Reads the answer of the first report, which committed the same payment id. */
async function recordedBefore(pool: MysqlPool, orderId: string, payment: Payment): Promise<PayOutcome | null> {
  for (const table of ['payments', 'payments_archive'] as const) {
    const [row] = await select(pool, paymentWithRefund(table, payment.paymentId));
    if (row !== undefined) return outcomeBefore(row, orderId, payment);
  }
  return null;
}

interface RecordedPayment {
  readonly order_id: string;
  readonly amount_cents: string;
  readonly refund: string | null;
}

const paymentWithRefund = (table: 'payments' | 'payments_archive', paymentId: string) =>
  knex
    .from(`${table} as p`)
    .leftJoin('refunds as r', 'r.payment_id', 'p.payment_id')
    .where('p.payment_id', paymentId)
    .select<RecordedPayment[]>('p.order_id', 'p.amount_cents', 'r.payment_id as refund');

function outcomeBefore(row: RecordedPayment, orderId: string, { amountCents }: Payment): PayOutcome {
  if (row.order_id !== orderId || Number(row.amount_cents) !== amountCents) return 'payment_conflict';
  return row.refund === null ? 'paid' : 'refund_due';
}

interface Due {
  /** The time by our clock. It ensures that no order ends before its deadline if the clock of MySQL jumps ahead. */
  readonly nowMs: number;
  readonly exceptSales: readonly string[];
}

/** Locks due orders, always in the order of the primary key. Rows that are not due are unlocked at once. */
function lockDueOf(tx: Transaction, orderIds: readonly string[], due: Due) {
  return select(tx, dueOrders('PRIMARY', due).whereRaw(idIn(orderIds)).orderBy('id'));
}

/** Locks due orders, oldest deadline first. Skips rows that others have locked, so two sweepers share the work. */
function lockDue(tx: Transaction, max: number, due: Due): Promise<LockedOrder[]> {
  return select(tx, dueOrders('expiry', due).orderBy('expires_at').limit(max).skipLocked());
}

const dueOrders = (index: 'PRIMARY' | 'expiry', { nowMs, exceptSales }: Due) =>
  lockable('orders', index)
    .whereIn('state', statesBefore('expired'))
    .where('expires_at', '<=', now())
    .where('expires_at', '<=', new Date(nowMs))
    .whereNotIn('orders.sale_id', exceptSales);

async function expireLocked(tx: Transaction, orders: readonly LockedOrder[]): Promise<number> {
  if (orders.length > 0) await moveOrders(tx, orders, 'expired');
  return orders.length;
}
