import type { OrderNotification } from '../core/order-notifications.js';
import type { OrderNotificationRows } from '../core/ports/purchase-notifications.js';
import type { OrderRow } from './order-rows.js';
import type { MysqlPool } from './pool.js';

/** How orders stand, in MySQL: by primary key. */
export function createNotificationsRows(pool: MysqlPool): OrderNotificationRows {
  return {
    async notificationsOf(orderIds): Promise<OrderNotification[]> {
      if (orderIds.length === 0) return [];
      const rows = await pool.query<Pick<OrderRow, 'id' | 'user_id' | 'request_id' | 'state' | 'reason'>>(
        'SELECT id, user_id, request_id, state, reason FROM orders WHERE id IN (?)',
        [orderIds],
      );
      return rows.map(({ id: orderId, user_id: userId, request_id: requestId, state, reason }) => {
        return { userId, requestId, orderId, state, reason };
      });
    },
  };
}
