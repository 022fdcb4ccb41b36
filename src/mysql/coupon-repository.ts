import type { CouponRepository } from '../core/ports/coupon-repository.js';
import type { MysqlPool } from './pool.js';

/** Coupons, in MySQL: the order is the primary key, so no copy of an event makes a second one. */
export function createCouponRepository(pool: MysqlPool): CouponRepository {
  return {
    issue: (orderIds) => issue(pool, orderIds),
    withoutCoupon: (orderIds) => withoutCoupon(pool, orderIds),
  };
}

async function issue(pool: MysqlPool, orderIds: readonly string[]) {
  if (orderIds.length === 0) return { issued: 0, unpaid: [] };
  // No IGNORE: it would also hide a value that does not fit. A coupon that is there is left as it is.
  const { affectedRows } = await pool.execute(
    'INSERT INTO coupons (order_id, sale_id, user_id)' +
      " SELECT id, sale_id, user_id FROM orders WHERE id IN (?) AND state = 'paid' ORDER BY id" +
      ' ON DUPLICATE KEY UPDATE order_id = coupons.order_id',
    [orderIds],
  );
  return { issued: affectedRows, unpaid: await withoutCoupon(pool, orderIds) };
}

async function withoutCoupon(pool: MysqlPool, orderIds: readonly string[]): Promise<string[]> {
  if (orderIds.length === 0) return [];
  const rows = await pool.query<{ readonly order_id: string }>('SELECT order_id FROM coupons WHERE order_id IN (?)', [
    orderIds,
  ]);
  const having = new Set(rows.map((row) => row.order_id));
  return orderIds.filter((orderId) => !having.has(orderId));
}
