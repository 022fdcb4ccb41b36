import { mayMove, statesBefore } from '../core/order.js';
import { isOrderId } from '../core/ids.js';
import type { Clock } from '../core/ports/clock.js';
import type { Log } from '../core/ports/log.js';
import type { CancelOutcome, OrderTransitions, OverdueOrders } from '../core/ports/order-transitions.js';
import { idList, LOCKED_COLUMNS, moveOrders, SaleOutOfStep, type LockedOrder } from './move-orders.js';
import type { MysqlPool, Transaction } from './pool.js';
import { recordPayment } from './record-payment.js';
import { retryConflicts } from './retry-conflicts.js';

/** Orders of one transaction: some tens of ms, so that a buyer who pays at the last moment waits no longer. */
const ORDERS_PER_TRANSACTION = 500;
const DUE = 'state IN (?) AND expires_at <= UTC_TIMESTAMP(3)';

export interface OrderMovesParts {
  readonly clock: Pick<Clock, 'sleep'>;
  readonly log: Log;
}

/** Locks orders that are due, but for those of some sales. */
type LockOrders = (tx: Transaction, butSales: readonly string[]) => Promise<LockedOrder[]>;

/** Moves of orders, in MySQL. A transaction that loses its locks is tried again as a whole. */
export function createOrderTransitions(
  pool: MysqlPool,
  { clock, log }: OrderMovesParts,
): OrderTransitions & OverdueOrders {
  const transaction = <T>(work: (tx: Transaction) => Promise<T>): Promise<T> =>
    retryConflicts(clock, () => pool.transaction(work));

  /** One transaction. A sale that is out of step keeps its orders, and must not keep those of the others. */
  const expireSome = async (lock: LockOrders, outOfStep: string[]): Promise<number> => {
    for (;;) {
      try {
        return await transaction(async (tx) => expireLocked(tx, await lock(tx, outOfStep)));
      } catch (error) {
        if (!(error instanceof SaleOutOfStep) || outOfStep.includes(error.saleId)) throw error;
        outOfStep.push(error.saleId);
        log.error({ saleId: error.saleId }, 'orders cannot expire: the sale counts fewer units sold than they have');
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
        ended += await expireSome((tx, butSales) => lockDueOf(tx, some, butSales), outOfStep);
      }
      return ended;
    },

    async expireDue(max): Promise<number> {
      const outOfStep: string[] = [];
      let ended = 0;
      while (ended < max) {
        const size = Math.min(ORDERS_PER_TRANSACTION, max - ended);
        const some = await expireSome((tx, butSales) => lockDue(tx, size, butSales), outOfStep);
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
function lockDueOf(tx: Transaction, orderIds: readonly string[], butSales: readonly string[]): Promise<LockedOrder[]> {
  return tx.query<LockedOrder>(
    `SELECT ${LOCKED_COLUMNS} FROM orders FORCE INDEX (PRIMARY) WHERE id IN (${idList(orderIds)}) AND ${DUE}` +
      `${but(butSales)} ORDER BY id FOR UPDATE`,
    [statesBefore('expired')],
  );
}

/** Oldest deadline first, along the index `expiry`. Rows of others are passed over, so two sweepers share the work. */
function lockDue(tx: Transaction, max: number, butSales: readonly string[]): Promise<LockedOrder[]> {
  return tx.query<LockedOrder>(
    `SELECT ${LOCKED_COLUMNS} FROM orders FORCE INDEX (expiry) WHERE ${DUE}` +
      `${but(butSales)} ORDER BY expires_at LIMIT ? FOR UPDATE SKIP LOCKED`,
    [statesBefore('expired'), max],
  );
}

const but = (saleIds: readonly string[]): string =>
  saleIds.length === 0 ? '' : ` AND sale_id NOT IN (${idList(saleIds)})`;

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
