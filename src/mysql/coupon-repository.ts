import type { CouponRepository } from '../core/ports/order-repository.js';
import type { OrderTable } from './both-tables.js';
import { execute, knex, select } from './knex.js';
import type { MysqlPool } from './pool.js';

/**
 * Without IGNORE, which would also hide a value that does not fit. An existing coupon stays unchanged. The lock waits
 * for an order that is moving to the archive, with its coupon. Written as SQL, since the builder has no ON DUPLICATE
 * KEY for an INSERT … SELECT.
 */
const issueFrom = (table: OrderTable): string => `INSERT INTO coupons (order_id, sale_id, user_id)
  SELECT id, sale_id, user_id FROM ${table} WHERE id IN (:orderIds) AND (state = 'paid' OR after_paid = 'returned')
  ORDER BY id LOCK IN SHARE MODE
  ON DUPLICATE KEY UPDATE order_id = coupons.order_id`;

/** Coupons in MySQL. The order is the primary key, so a second copy of an event makes no second coupon. */
export function createCouponRepository(pool: MysqlPool): CouponRepository {
  const withoutCoupon = async (orderIds: readonly string[]): Promise<string[]> => {
    const having = new Set<string>();
    for (const table of ['coupons', 'coupons_archive'] as const) {
      const left = orderIds.filter((orderId) => !having.has(orderId));
      if (left.length === 0) break;
      const rows = await select(
        pool,
        knex(table as 'coupons')
          .select('order_id')
          .whereIn('order_id', left),
      );
      for (const row of rows) having.add(row.order_id);
    }
    return orderIds.filter((orderId) => !having.has(orderId));
  };
  const issue = async (table: OrderTable, orderIds: readonly string[]): Promise<number> =>
    (await execute(pool, knex.raw(issueFrom(table), { orderIds: [...orderIds] }))).affectedRows;
  return {
    withoutCoupon,
    async issue(orderIds) {
      if (orderIds.length === 0) return { issued: 0, unpaid: [] };
      const issued = await issue('orders', orderIds);
      const left = await withoutCoupon(orderIds);
      if (left.length === 0) return { issued, unpaid: left };
      // unpaid, or moved to the archive before its event came
      const late = await issue('orders_archive', left);
      return { issued: issued + late, unpaid: late === 0 ? left : await withoutCoupon(left) };
    },
  };
}
