import type { Knex } from 'knex';
import { idBelow, lowestOrderIdAt, ORDER_ID_EPOCH_MS, ORDER_ID_TIME_SHIFT } from '../../core/order-id.js';
import type { OrderCursor } from '../../core/ports/reconcile-repository.js';
import { bigint, knex, select } from '../../mysql/knex.js';
import { behind, ordersIn, rangesAfter, windowsOf } from '../../mysql/order-ranges.js';
import type { MysqlPool } from '../../mysql/pool.js';

/** Number of written orders, by sale or by second (Unix ms, a multiple of 1000). */
type OrdersBySale = ReadonlyMap<string, number>;
type OrdersBySecond = ReadonlyMap<number, number>;

/** Maximum number of rows per read: of `order_ranges`, which has a row per transaction of a worker, and of orders. */
const LOOK = { ranges: 50_000, orders: 200_000 };
const SECOND_MS = 1000;

export type LandedOrders = ReturnType<typeof createLandedOrders>;

/**
 * Counts written orders by the time in their ids, because an index by time would cost every order. A transaction's
 * orders count in its first second; uncommitted orders are missing. @param look limits, for tests
 */
export function createLandedOrders(pool: MysqlPool, look: typeof LOOK = LOOK) {
  return {
    /** Returns only sales with orders. @param saleIds a small number. @throws OperationalError mysql */
    async bySale(saleIds: readonly string[], fromMs: number, toMs: number): Promise<OrdersBySale> {
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

    /** Counts archived orders too. @returns seconds with orders, and where it ended. @throws OperationalError mysql */
    async bySecond(saleId: string, fromMs: number, toMs: number) {
      const ofSale = { sale_id: saleId };
      const archived = await readSeconds(
        pool,
        knex
          .from(knex.raw('orders_archive FORCE INDEX (sale)'))
          .select('id', knex.raw('1 AS orders'))
          .where(ofSale)
          .where(inTime('id', fromMs, toMs)),
        look.orders,
      );
      const ranges = knex('order_ranges')
        .select({ id: 'first_id' }, 'orders')
        .where(ofSale)
        .where(inTime('first_id', fromMs, toMs));
      // A range keeps its count while it has an order in `orders`. If some are archived, the rows show the rest.
      const live =
        archived.seconds.size === 0
          ? await readSeconds(pool, ranges, look.ranges)
          : await readLeft(pool, saleId, fromMs, toMs, look.orders);
      const readToMs = Math.min(endOf(archived, toMs), endOf(live, toMs));
      const seconds = new Map<number, number>();
      for (const part of [archived, live]) addTo(seconds, part.seconds);
      const read = [...seconds].filter(([atMs]) => atMs < readToMs);
      return { seconds: new Map(read.sort(([one], [other]) => one - other)), readToMs };
    },
  };
}

const inTime =
  (column: string, fromMs: number, toMs: number) =>
  (where: Knex.QueryBuilder): void =>
    void where.where(column, '>=', bigint(lowestOrderIdAt(fromMs))).where(column, '<', bigint(lowestOrderIdAt(toMs)));

interface ReadSeconds {
  /** In ascending order. */
  readonly seconds: OrdersBySecond;
  /** True if there may be more than was read. The last second is then incomplete, and later ones are missing. */
  readonly isCut: boolean;
}

/** Returns how far the read got. A second above the limit counts as read, so that the next read gets past it. */
function endOf({ seconds, isCut }: ReadSeconds, toMs: number): number {
  const lastMs = [...seconds.keys()].at(-1);
  if (!isCut || lastMs === undefined) return toMs;
  return seconds.size === 1 ? lastMs + SECOND_MS : lastMs;
}

function addTo(seconds: Map<number, number>, more: OrdersBySecond): void {
  for (const [atMs, orders] of more) seconds.set(atMs, (seconds.get(atMs) ?? 0) + orders);
}

async function readSeconds(pool: MysqlPool, rows: Knex.QueryBuilder, max: number): Promise<ReadSeconds> {
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
  return {
    seconds: new Map(found.map(({ second, n }) => [ORDER_ID_EPOCH_MS + Number(second) * SECOND_MS, Number(n)])),
    isCut: found.reduce((sum, { read }) => sum + Number(read), 0) === max,
  };
}

/** Reads unarchived orders through their ranges. The ids of one transaction date from about the same moment. */
async function readLeft(
  pool: MysqlPool,
  saleId: string,
  fromMs: number,
  toMs: number,
  max: number,
): Promise<ReadSeconds> {
  const end = BigInt(lowestOrderIdAt(toMs));
  const seconds = new Map<number, number>();
  let left = max;
  let cursor: OrderCursor | null = {
    afterFirst: lowestOrderIdAt(fromMs - SECOND_MS),
    readTo: idBelow(lowestOrderIdAt(fromMs)),
  };
  while (cursor !== null && BigInt(cursor.afterFirst) < end) {
    const taken = await rangesAfter(pool, saleId, cursor.afterFirst, left);
    const windows = windowsOf(taken, cursor.readTo);
    cursor = behind(taken, cursor);
    if (windows.length === 0) continue;
    const rows = ordersIn(saleId, windows)
      .select('id', knex.raw('1 AS orders'))
      .where('id', '<', bigint(String(end)));
    const part = await readSeconds(pool, rows, left);
    addTo(seconds, part.seconds);
    if (part.isCut) return { seconds, isCut: true };
    for (const orders of part.seconds.values()) left -= orders;
  }
  return { seconds, isCut: false };
}
