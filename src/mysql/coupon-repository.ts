import type { CouponRepository } from '../core/ports/order-repository.js';
import { fromOrders, type OrderTable } from './both-tables.js';
import { insertCodes } from './coupon-codes.js';
import { execute, knex, select } from './knex.js';
import { idIn } from './move-orders.js';
import type { MysqlPool, Statements } from './pool.js';

/** Coupons in MySQL. The order is the primary key, so a second copy of an event does not create a second coupon. */
export function createCouponRepository(pool: MysqlPool): CouponRepository {
  const withoutCoupon = async (orderIds: readonly string[], on: Statements = pool): Promise<string[]> => {
    const having = new Set<string>();
    for (const table of ['coupons', 'coupons_archive'] as const) {
      const left = orderIds.filter((orderId) => !having.has(orderId));
      if (left.length === 0) break;
      const rows = await select(
        on,
        knex(table as 'coupons')
          .select('order_id')
          .whereIn('order_id', left),
      );
      for (const row of rows) having.add(row.order_id);
    }
    return orderIds.filter((orderId) => !having.has(orderId));
  };
  /** The lock lets one keeper at a time issue a coupon, and waits for an order that is moving to the archive. */
  const issue = (table: OrderTable, orderIds: readonly string[]): Promise<number> =>
    pool.transaction(async (tx) => {
      const paid = fromOrders(table)
        .select('id', 'sale_id', 'user_id')
        .whereRaw(idIn(orderIds))
        .where((was) => void was.where({ state: 'paid' }).orWhere({ after_paid: 'returned' }));
      const orders = await select(tx, paid.orderBy('id').forUpdate());
      const without = new Set(
        await withoutCoupon(
          orders.map(({ id }) => id),
          tx,
        ),
      );
      const fresh = orders.filter(({ id }) => without.has(id));
      if (fresh.length === 0) return 0;
      const rows = fresh.map(({ id, sale_id, user_id }) => ({ order_id: id, sale_id, user_id }));
      await execute(tx, knex('coupons').insert(rows));
      await insertCodes(tx, fresh);
      return fresh.length;
    });
  return {
    withoutCoupon: (orderIds) => withoutCoupon(orderIds),
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
