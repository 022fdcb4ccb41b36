import { expect } from 'chai';
import { createCouponRepository } from '../../src/mysql/coupon-repository.js';
import { createStoredNotifications } from '../../src/mysql/notifications.js';
import { createOrderRefunds } from '../../src/mysql/order-refunds.js';
import { planDeliveries } from '../../src/mysql/webhook-queue.js';
import type { Order } from '../../src/core/order.js';
import { useWorld } from './on-each-world.js';
import { mysqlMoves, ordersIn, paymentOf, type OrdersParts } from './order-transitions-worlds.js';
import { systemClock } from './repository-worlds.js';

const NOTED: OrdersParts = {
  sale: { coupon: '10% 30d' },
  metadata: { cart: '42' },
  traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
};

describe('contract: rows of an order on MySQL', () => {
  const world = useWorld(mysqlMoves);
  const count = async (sql: string): Promise<number> =>
    Number((await world.pool.query<{ n: string }>(`SELECT COUNT(*) AS n FROM ${sql}`))[0]?.n);

  /** Returns tables with this column, except tables of findings, whose rows may belong to no order. */
  async function tablesWith(column: string): Promise<string[]> {
    const rows = await world.pool.query<{ name: string }>(
      `SELECT table_name AS name FROM information_schema.columns WHERE table_schema = DATABASE() AND column_name = ?`,
      [column],
    );
    return rows.map(({ name }) => name).filter((name) => name !== 'payment_cases' && name !== 'witness_findings');
  }

  /** Fills every table with rows of orders, of an open sale and of an archived sale. */
  async function fillTables(): Promise<void> {
    const refunds = createOrderRefunds(world.pool, { clock: systemClock });
    const refunded = async (order: Order): Promise<void> => {
      await world.attempts.open(order.orderId, 'first', order.amountCents, 0);
      await world.attempts.close({ orderId: order.orderId, key: 'first' }, 'charged');
      await world.transitions.pay(order.orderId, paymentOf(order));
      await world.transitions.pay(order.orderId, paymentOf(order, { amountCents: 0 })); // a second payment is owed back
      await createCouponRepository(world.pool).issue([order.orderId]);
      const event = {
        eventId: '1-paid',
        type: 'order.paid',
        saleId: order.saleId,
        orders: [order.orderId],
        atMs: 1,
      } as const;
      await createStoredNotifications(world.pool).store([event]);
      await planDeliveries(world.pool, [event], [{ endpointId: '1', events: ['order.paid'] }]);
      await refunds.order(order.orderId, { restock: false, reason: 'late' }, 'ann');
      const [refund] = await refunds.refundsOf(order.orderId);
      await refunds.settle(refund?.refundId ?? '');
    };
    for (const isArchived of [true, false]) {
      const { sale, orders } = await ordersIn(world, ['ann', 'bob'], NOTED);
      const [paid, other] = orders as [Order, Order];
      await refunded(paid);
      await world.transitions.cancel(other.orderId);
      if (!isArchived) continue;
      await world.sales.move(sale.saleId, 'warm');
      await world.sales.move(sale.saleId, 'closed');
      await world.retirement.retire(sale, 'keeper');
      await world.retirement.forgotten(sale.saleId);
      await world.archive.begin(sale.saleId, 'keeper');
      expect(await world.archive.move(sale.saleId, null, 10)).to.include({ moved: 2, kept: 0 });
    }
  }

  it('names the sale in every row that belongs to an order, in the archive too', async () => {
    await fillTables();
    const withOrder = await tablesWith('order_id');
    expect(await tablesWith('sale_id')).to.include.members([...withOrder, 'outbox']);
    for (const table of withOrder) {
      const orders = '(SELECT id, sale_id FROM orders UNION ALL SELECT id, sale_id FROM orders_archive) AS o';
      const rows = `${table} AS t JOIN ${orders} ON o.id = t.order_id`;
      expect(await count(rows), `${table} has rows`).to.be.above(0);
      expect(await count(`${rows} WHERE NOT (t.sale_id <=> o.sale_id)`), `${table}: another sale`).to.equal(0);
    }
    for (const kind of ['batch_recorded', 'orders_moved', 'release']) {
      const rows = `outbox WHERE kind = '${kind}'`;
      expect(await count(rows), kind).to.be.above(0);
      const named = `payload LIKE CONCAT('%"saleId":"', sale_id, '"%')`;
      expect(await count(`${rows} AND NOT COALESCE(${named}, FALSE)`), `${kind}: another sale`).to.equal(0);
    }
  });
});
