import type { Knex } from 'knex';
import { lowestOrderIdAt, ORDER_ID_EPOCH_MS, ORDER_ID_TIME_SHIFT } from '../core/order-id.js';
import type { LandedOrders, OrdersBySecond } from '../core/ports/landed-orders.js';
import { bigint, knex, select } from './knex.js';
import type { MysqlPool } from './pool.js';

/** Rows of `order_ranges`, one for each transaction of a worker, and of the index of the archive, that one look reads. */
const LOOK = { ranges: 50_000, archived: 200_000 };

/** Reads when orders were written off their ids, so that no order pays for an index by time. @param look for tests */
export function createLandedOrders(pool: MysqlPool, look: typeof LOOK = LOOK): LandedOrders {
  return {
    async bySale(saleIds, fromMs, toMs): Promise<ReadonlyMap<string, number>> {
      if (saleIds.length === 0) return new Map();
      const found = await select(
        pool,
        knex('order_ranges')
          .select('sale_id')
          .select<{ sale_id: string; n: string }[]>(knex.raw('SUM(orders) AS n'))
          .whereIn('sale_id', saleIds.map(bigint))
          .where(inTime('first_id', fromMs, toMs))
          .groupBy('sale_id'),
      );
      return new Map(found.map(({ sale_id, n }) => [sale_id, Number(n)]));
    },

    async bySecond(saleId, fromMs, toMs): Promise<{ seconds: OrdersBySecond; readToMs: number }> {
      const ofSale = { sale_id: saleId };
      const ranges = knex('order_ranges')
        .select({ id: 'first_id' }, 'orders')
        .where(ofSale)
        .where(inTime('first_id', fromMs, toMs));
      const archived = knex
        .from(knex.raw('orders_archive FORCE INDEX (sale)'))
        .select('id', knex.raw('1 AS orders'))
        .where(ofSale)
        .where(inTime('id', fromMs, toMs));
      const both = [
        await readSeconds(pool, ranges, look.ranges, toMs),
        await readSeconds(pool, archived, look.archived, toMs),
      ];
      const readToMs = Math.min(...both.map((part) => part.readToMs));
      const seconds = new Map<number, number>();
      for (const part of both) {
        for (const [atMs, orders] of part.seconds) {
          if (atMs < readToMs) seconds.set(atMs, (seconds.get(atMs) ?? 0) + orders);
        }
      }
      return { seconds: new Map([...seconds].sort(([one], [other]) => one - other)), readToMs };
    },
  };
}

const inTime =
  (column: string, fromMs: number, toMs: number) =>
  (where: Knex.QueryBuilder): void =>
    void where.where(column, '>=', bigint(lowestOrderIdAt(fromMs))).where(column, '<', bigint(lowestOrderIdAt(toMs)));

/** Up to the last second that is read whole. */
async function readSeconds(
  pool: MysqlPool,
  rows: Knex.QueryBuilder,
  max: number,
  toMs: number,
): Promise<{ readonly seconds: OrdersBySecond; readonly readToMs: number }> {
  const found = await select(
    pool,
    knex
      .from(rows.orderBy('id').limit(max).as('some'))
      .select<{ second: string; n: string; read: string }[]>(
        knex.raw(`(id >> ${ORDER_ID_TIME_SHIFT}) DIV 1000 AS second, SUM(orders) AS n, COUNT(*) AS \`read\``),
      )
      .groupBy('second')
      .orderBy('second'),
  );
  const seconds = new Map(found.map(({ second, n }) => [ORDER_ID_EPOCH_MS + Number(second) * 1000, Number(n)]));
  const isCut = found.reduce((sum, { read }) => sum + Number(read), 0) === max;
  const lastMs = [...seconds.keys()].at(-1);
  if (!isCut || lastMs === undefined || seconds.size === 1) return { seconds, readToMs: toMs };
  seconds.delete(lastMs);
  return { seconds, readToMs: lastMs };
}
