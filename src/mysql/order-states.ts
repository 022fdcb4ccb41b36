import type { OrderState } from '../core/order.js';
import type { OrderStates } from '../core/ports/order-states.js';
import type { MysqlPool } from './pool.js';

/** Where orders stand, in MySQL. */
export function createOrderStates(pool: MysqlPool): OrderStates {
  return {
    async statesOf(orderIds): Promise<Map<string, OrderState>> {
      if (orderIds.length === 0) return new Map();
      const rows = await pool.query<{ readonly id: string; readonly state: OrderState }>(
        'SELECT id, state FROM orders WHERE id IN (?)',
        [orderIds],
      );
      return new Map(rows.map(({ id, state }) => [id, state]));
    },
    async dueOf(orderIds): Promise<string[]> {
      if (orderIds.length === 0) return [];
      const rows = await pool.query<{ readonly id: string }>(
        "SELECT id FROM orders WHERE id IN (?) AND state = 'pending_payment' AND expires_at <= UTC_TIMESTAMP(3)",
        [orderIds],
      );
      return rows.map(({ id }) => id);
    },
  };
}
