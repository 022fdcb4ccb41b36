import { stateOf, type Order, type OrderState, type ShownOrder } from '../core/order.js';
import type { OrderNotification } from '../core/order-notifications.js';
import { purchaseKey, type PurchaseName } from '../core/purchase.js';
import type { OrderRepository } from '../core/ports/order-repository.js';
import type { OrderStates } from '../core/ports/order-transitions.js';
import type { OrderNotificationRows } from '../core/ports/purchase-notifications.js';
import { findInBoth, fromOrders, type OrderTable } from './both-tables.js';
import { knex, now, select } from './knex.js';
import type { MysqlPool } from './pool.js';
import { shownOrders } from './shown-orders.js';
import { type Columns, ORDER_COLUMNS, orderOf, type OrderRow, type SaleRow } from './tables.js';
import { writeOrders } from './write-orders.js';

/** Each statement reads committed data. Worker and status look-ups are hot, so their SQL is written by hand. */
export function createOrderRepository(pool: MysqlPool): OrderRepository {
  return {
    async termsOf(saleIds) {
      if (saleIds.length === 0) return new Map();
      const rows = await pool.query<Columns<SaleRow, typeof TERMS>>(
        `SELECT ${TERMS.join(', ')} FROM sales WHERE id IN (?)`,
        [saleIds],
      );
      return new Map(
        rows.map((row) => [
          row.id,
          {
            saleId: row.id,
            epoch: row.epoch,
            priceCents: row.price_cents,
            limitPerBuyer: row.limit_per_buyer,
            paymentWindowMs: row.payment_window_ms,
            retired: row.retirement !== 'none',
          },
        ]),
      );
    },
    write: (plan) => writeOrders(pool, plan),
    /** Searches the archive only for the few orders that `orders` lacks. */
    async findByPurchases(saleId, purchases) {
      const found = await findIn(pool, 'orders', saleId, purchases);
      if (found.length >= purchases.length) return found;
      const keys = new Set(found.map(purchaseKey));
      const missing = purchases.filter((purchase) => !keys.has(purchaseKey(purchase)));
      return missing.length === 0 ? found : [...found, ...(await findIn(pool, 'orders_archive', saleId, missing))];
    },
    /** Reads one index entry per batch. Skips the archive, because a retired sale has no batch pending. */
    async writtenBatches(batchIds) {
      if (batchIds.length === 0) return new Set();
      const one = '(SELECT batch_id FROM orders WHERE batch_id = ? LIMIT 1)';
      const sql = batchIds.map(() => one).join(' UNION ALL ');
      const rows = await pool.query<{ readonly batch_id: string }>(sql, [...batchIds]);
      return new Set(rows.map((row) => row.batch_id));
    },
    /** Reads only `orders`, because a batch of an archived sale is outdated and cannot take a place. */
    async liveBuyers(saleId, userIds) {
      if (userIds.length === 0) return new Set();
      const rows = await pool.query<{ readonly user_id: string }>(
        'SELECT user_id FROM orders WHERE active_key = ? AND user_id IN (?)',
        [saleId, userIds],
      );
      return new Set(rows.map((row) => row.user_id));
    },
    async findOrder(orderId): Promise<ShownOrder | null> {
      const byId = (table: OrderTable) =>
        select(
          pool,
          fromOrders(table)
            .select(...ORDER_COLUMNS)
            .where({ id: orderId }),
        );
      const [order] = await shownOrders(pool, await findInBoth([orderId], byId, ({ id }) => id));
      return order ?? null;
    },
    async countCancelled(saleId, userId): Promise<number> {
      const rows = await select(
        pool,
        knex('orders')
          .count({ count: '*' })
          .where({ user_id: userId, sale_id: saleId, state: 'cancelled', after_paid: null }),
      );
      return Number(rows[0]?.count ?? 0);
    },
    /** Reads only `orders`, because an archived sale sells nothing. */
    async expiredOf(saleId, userIds) {
      if (userIds.length === 0) return new Map();
      const rows = await pool.query<{ user_id: string; count: string; last_ago_us: string }>(
        `SELECT user_id, COUNT(*) AS count, TIMESTAMPDIFF(MICROSECOND, MAX(expires_at), UTC_TIMESTAMP(3)) AS last_ago_us
           FROM orders WHERE sale_id = ? AND user_id IN (?) AND state = 'expired' GROUP BY user_id`,
        [saleId, userIds],
      );
      return new Map(
        rows.map((row) => [row.user_id, { count: Number(row.count), lastAgoMs: Number(row.last_ago_us) / 1000 }]),
      );
    },
  };
}

const TERMS = ['id', 'epoch', 'price_cents', 'limit_per_buyer', 'payment_window_ms', 'retirement'] as const;

const SELECT_ORDERS = {
  orders: `SELECT ${ORDER_COLUMNS.join(', ')} FROM orders`,
  orders_archive: `SELECT ${ORDER_COLUMNS.join(', ')} FROM orders_archive`,
} as const satisfies Record<OrderTable, string>;

/** Searches by buyer and compares requests here, because not every version optimises a list of pairs. */
async function findIn(
  pool: MysqlPool,
  table: OrderTable,
  saleId: string,
  purchases: readonly PurchaseName[],
): Promise<Order[]> {
  if (purchases.length === 0) return [];
  const wanted = new Set(purchases.map(purchaseKey));
  const [only] = purchases;
  const single = purchases.length === 1 && only !== undefined;
  const rows = single
    ? await pool.query<OrderRow>(`${SELECT_ORDERS[table]} WHERE user_id = ? AND sale_id = ? AND request_id = ?`, [
        only.userId,
        saleId,
        only.requestId,
      ])
    : await pool.query<OrderRow>(`${SELECT_ORDERS[table]} WHERE sale_id = ? AND user_id IN (?)`, [
        saleId,
        [...new Set(purchases.map(({ userId }) => userId))],
      ]);
  return rows.map(orderOf).filter((order) => wanted.has(purchaseKey(order)));
}

/** The states of orders in MySQL, by primary key. An order that is waiting for payment is never in the archive. */
export function createOrderStates(pool: MysqlPool): OrderStates & OrderNotificationRows {
  return {
    async statesOf(orderIds): Promise<Map<string, OrderState>> {
      const states = (table: OrderTable, ids: readonly string[]) =>
        select(pool, fromOrders(table).whereIn('id', ids).select('id', 'state', 'after_paid'));
      const rows = await findInBoth(orderIds, states, ({ id }) => id);
      return new Map(rows.map((row) => [row.id, stateOf(row.state, row.after_paid)]));
    },
    async dueOf(orderIds): Promise<string[]> {
      if (orderIds.length === 0) return [];
      const unpaid = knex('orders').whereIn('id', orderIds).where({ state: 'pending_payment' });
      return (await select(pool, unpaid.where('expires_at', '<=', now()).select('id'))).map(({ id }) => id);
    },
    async notificationsOf(orderIds): Promise<OrderNotification[]> {
      const notified = (table: OrderTable, ids: readonly string[]) =>
        select(
          pool,
          fromOrders(table).whereIn('id', ids).select('id', 'user_id', 'request_id', 'state', 'after_paid', 'reason'),
        );
      return (await findInBoth(orderIds, notified, ({ id }) => id)).map((row) => ({
        orderId: row.id,
        userId: row.user_id,
        requestId: row.request_id,
        state: stateOf(row.state, row.after_paid),
        reason: row.reason,
      }));
    },
  };
}
