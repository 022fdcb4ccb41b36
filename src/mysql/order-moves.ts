import { mayMove, statesBefore } from '../domain/order.js';
import { isOrderId } from '../domain/ids.js';
import type { Clock } from '../ports/clock.js';
import type { CancelOutcome, OrderMoves, OverdueOrders } from '../ports/order-moves.js';
import { idList, LOCKED_COLUMNS, moveOrders, type LockedOrder } from './move-orders.js';
import type { MysqlPool, Transaction } from './pool.js';
import { recordPayment } from './record-payment.js';
import { retryConflicts } from './retry-conflicts.js';

/** Orders of one transaction: some tens of ms, so that a buyer who pays at the last moment waits no longer. */
const ORDERS_PER_TRANSACTION = 500;
const DUE = 'state IN (?) AND expires_at <= UTC_TIMESTAMP(3)';

/** Moves of orders, in MySQL. A transaction that loses its locks is tried again as a whole. */
export function createOrderMoves(pool: MysqlPool, clock: Pick<Clock, 'sleep'>): OrderMoves & OverdueOrders {
  const transaction = <T>(work: (tx: Transaction) => Promise<T>): Promise<T> =>
    retryConflicts(clock, () => pool.transaction(work));
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
      let ended = 0;
      for (let from = 0; from < known.length; from += ORDERS_PER_TRANSACTION) {
        const some = known.slice(from, from + ORDERS_PER_TRANSACTION);
        ended += await transaction(async (tx) => expireLocked(tx, await lockDueOf(tx, some)));
      }
      return ended;
    },

    async expireDue(max): Promise<number> {
      let ended = 0;
      while (ended < max) {
        const size = Math.min(ORDERS_PER_TRANSACTION, max - ended);
        const some = await transaction(async (tx) => expireLocked(tx, await lockDue(tx, size)));
        ended += some;
        if (some < size) break;
      }
      return ended;
    },

    overdue: () => overdue(pool),
  };
}

async function cancel(tx: Transaction, orderId: string): Promise<CancelOutcome> {
  const [order] = await tx.query<LockedOrder>(`SELECT ${LOCKED_COLUMNS} FROM orders WHERE id = ? FOR UPDATE`, [
    orderId,
  ]);
  if (order === undefined) return 'not_found';
  if (order.state === 'cancelled') return 'cancelled';
  if (!mayMove(order.state, 'cancelled')) return 'wrong_state';
  await moveOrders(tx, [order], 'cancelled');
  return 'cancelled';
}

/** In the order of the primary key, whoever asks; rows that are not due are let go at once. */
function lockDueOf(tx: Transaction, orderIds: readonly string[]): Promise<LockedOrder[]> {
  return tx.query<LockedOrder>(
    `SELECT ${LOCKED_COLUMNS} FROM orders FORCE INDEX (PRIMARY) WHERE id IN (${idList(orderIds)}) AND ${DUE}` +
      ' ORDER BY id FOR UPDATE',
    [statesBefore('expired')],
  );
}

/** Oldest deadline first, along the index `expiry`. Rows of others are passed over, so two sweepers share the work. */
function lockDue(tx: Transaction, max: number): Promise<LockedOrder[]> {
  return tx.query<LockedOrder>(
    `SELECT ${LOCKED_COLUMNS} FROM orders FORCE INDEX (expiry) WHERE ${DUE}` +
      ' ORDER BY expires_at LIMIT ? FOR UPDATE SKIP LOCKED',
    [statesBefore('expired'), max],
  );
}

async function expireLocked(tx: Transaction, orders: readonly LockedOrder[]): Promise<number> {
  if (orders.length > 0) await moveOrders(tx, orders, 'expired');
  return orders.length;
}

async function overdue(pool: MysqlPool): Promise<{ orders: number; oldestMs: number }> {
  const [row] = await pool.query<{ orders: string; oldest_us: string | null }>(
    'SELECT COUNT(*) AS orders, TIMESTAMPDIFF(MICROSECOND, MIN(expires_at), UTC_TIMESTAMP(3)) AS oldest_us' +
      ` FROM orders WHERE ${DUE}`,
    [statesBefore('expired')],
  );
  return { orders: Number(row?.orders ?? 0), oldestMs: Math.floor(Number(row?.oldest_us ?? 0) / 1000) };
}
