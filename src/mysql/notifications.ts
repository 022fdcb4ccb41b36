import { escape } from 'mysql2';
import type { OrderEvent } from '../core/order-event.js';
import type { StoredNotifications } from '../core/ports/notifications.js';
import type { OrderTable } from './both-tables.js';
import { quoted } from './insert-orders.js';
import { bigint, execute, knex, now, select } from './knex.js';
import { idIn } from './move-orders.js';
import type { MysqlPool } from './pool.js';

const NOTIFICATIONS_KEPT_DAYS = 90;
/** More than any buyer has. */
const READ_MAX = 10_000;

/** Does not use IGNORE, which would hide values that do not fit. Has no placeholders: the driver would search the ids. */
const storeFrom = (table: OrderTable, events: readonly OrderEvent[]): string => {
  const selects = events.map(
    ({ eventId, type, orders, atMs }) => `SELECT user_id, id AS order_id, sale_id, ${quoted(eventId)} AS event_id,
      ${quoted(type)} AS type, ${escape(new Date(atMs), false, 'Z')} AS happened_at FROM ${table} WHERE ${idIn(orders)}`,
  );
  return `INSERT INTO notifications (user_id, order_id, sale_id, event_id, type, happened_at)
    SELECT * FROM (${selects.join(' UNION ALL ')}) AS events ON DUPLICATE KEY UPDATE order_id = notifications.order_id`;
};

export const createStoredNotifications = (pool: MysqlPool): StoredNotifications => ({
  async store(events) {
    const { affectedRows } = await pool.execute(storeFrom('orders', events));
    // Archived orders have events too, such as refunds.
    if (affectedRows < events.flatMap(({ orders }) => orders).length)
      await pool.execute(storeFrom('orders_archive', events));
  },

  async list(userId, { onlyUnread, before, max }) {
    const page = knex('notifications').where({ user_id: userId });
    if (onlyUnread) void page.whereNull('read_at');
    if (before !== undefined) void page.where('id', '<', bigint(before));
    const rows = await select(pool, page.select('*').orderBy('id', 'desc').limit(max));
    return rows.map((row) => ({
      notificationId: row.id,
      type: row.type,
      orderId: row.order_id,
      saleId: row.sale_id,
      atMs: row.happened_at.getTime(),
      isRead: row.read_at !== null,
    }));
  },

  async markRead(userId, upTo) {
    const unread = knex('notifications').where({ user_id: userId }).whereNull('read_at');
    const read = unread.where('id', '<=', bigint(upTo)).limit(READ_MAX).update({ read_at: now() });
    return (await execute(pool, read)).affectedRows;
  },

  async removeOld(max) {
    const old = `created_at < UTC_TIMESTAMP(3) - INTERVAL ${NOTIFICATIONS_KEPT_DAYS} DAY`;
    const removed = await pool.execute(`DELETE FROM notifications WHERE ${old} ORDER BY created_at LIMIT ${max}`);
    return removed.affectedRows;
  },
});
