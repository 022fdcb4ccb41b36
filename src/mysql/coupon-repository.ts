import type { CouponRepository } from '../core/ports/order-repository.js';
import { execute, knex, select } from './knex.js';
import type { MysqlPool } from './pool.js';

/**
 * No IGNORE: it would also hide a value that does not fit. A coupon that is there is left as it is. In SQL, since the
 * builder has no ON DUPLICATE KEY for an INSERT … SELECT.
 */
const ISSUE = `INSERT INTO coupons (order_id, sale_id, user_id)
  SELECT id, sale_id, user_id FROM orders WHERE id IN (:orderIds) AND state = 'paid' ORDER BY id
  ON DUPLICATE KEY UPDATE order_id = coupons.order_id`;

/** Coupons, in MySQL: the order is the primary key, so no copy of an event makes a second one. */
export function createCouponRepository(pool: MysqlPool): CouponRepository {
  const withoutCoupon = async (orderIds: readonly string[]): Promise<string[]> => {
    if (orderIds.length === 0) return [];
    const rows = await select(pool, knex('coupons').select('order_id').whereIn('order_id', orderIds));
    const having = new Set(rows.map((row) => row.order_id));
    return orderIds.filter((orderId) => !having.has(orderId));
  };
  return {
    withoutCoupon,
    async issue(orderIds) {
      if (orderIds.length === 0) return { issued: 0, unpaid: [] };
      const { affectedRows } = await execute(pool, knex.raw(ISSUE, { orderIds: [...orderIds] }));
      return { issued: affectedRows, unpaid: await withoutCoupon(orderIds) };
    },
  };
}
