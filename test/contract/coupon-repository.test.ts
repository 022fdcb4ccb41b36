import { expect } from 'chai';
import type { OrderState } from '../../src/core/order.js';
import { createCouponRepository } from '../../src/mysql/coupon-repository.js';
import { createOrderStates } from '../../src/mysql/order-repository.js';
import { draftSale } from '../chaos/harness/sales.js';
import { mysqlWorld } from './repository-worlds.js';
import { useWorld } from './on-each-world.js';

describe('coupons and order states in MySQL', () => {
  const world = useWorld(() => mysqlWorld(4));

  /** Creates orders of a new sale, one per state. @returns the ids in the same order */
  async function ordersIn(...states: OrderState[]): Promise<string[]> {
    const { saleId } = await draftSale({ admin: world.sales });
    const base = BigInt(saleId) * 1000n + (1n << 61n); // Unique by sale, and too large for a double.
    for (const [index, state] of states.entries()) {
      const sql =
        'INSERT INTO orders (id, sale_id, user_id, request_id, batch_id, quantity, amount_cents, state, one_per_buyer)' +
        " VALUES (?, ?, ?, 'k1', 'batch-1', 1, 100, ?, 0)";
      await world.pool.execute(sql, [String(base + BigInt(index)), saleId, `u${index}`, state]);
    }
    return states.map((_, index) => String(base + BigInt(index)));
  }
  const coupons = (orderIds: readonly string[]) =>
    world.pool.query<{ order_id: string; user_id: string }>(
      'SELECT order_id, user_id FROM coupons WHERE order_id IN (?) ORDER BY order_id',
      [orderIds],
    );

  it('issues a coupon to the buyer of each paid order, and returns the other orders', async () => {
    const orderIds = await ordersIn('paid', 'pending_payment', 'paid', 'cancelled');
    const missing = '1';
    const result = await createCouponRepository(world.pool).issue([...orderIds, missing]);
    expect(result).to.deep.equal({ issued: 2, unpaid: [orderIds[1], orderIds[3], missing] });
    expect(await coupons(orderIds)).to.deep.equal([
      { order_id: orderIds[0], user_id: 'u0' },
      { order_id: orderIds[2], user_id: 'u2' },
    ]);
    expect(await createCouponRepository(world.pool).issue([])).to.deep.equal({ issued: 0, unpaid: [] });
  });

  it('names the orders without a coupon, for any reason', async () => {
    const [paid, unpaid, late] = (await ordersIn('paid', 'cancelled', 'paid')) as [string, string, string];
    const repository = createCouponRepository(world.pool);
    await repository.issue([paid, unpaid]);
    expect(await repository.withoutCoupon([late, paid, unpaid, '1'])).to.deep.equal([late, unpaid, '1']);
    expect(await repository.withoutCoupon([])).to.deep.equal([]);
  });

  it('names unpaid orders past their deadline', async () => {
    const [due, paid, later, open] = (await ordersIn(
      'pending_payment',
      'paid',
      'pending_payment',
      'pending_payment',
    )) as [...[string, string, string, string]];
    const setDeadline = (ids: string[], sql: string) =>
      world.pool.execute(`UPDATE orders SET expires_at = UTC_TIMESTAMP(3) ${sql} WHERE id IN (?)`, [ids]);
    await setDeadline([due, paid], '- INTERVAL 1 SECOND');
    await setDeadline([later], '+ INTERVAL 1 HOUR');
    const found = await createOrderStates(world.pool).dueOf([due, paid, later, open, '1']);
    // Keepers of later tests could not expire this order, because `sold` of its sale is 0.
    await world.pool.execute("UPDATE orders SET state = 'cancelled' WHERE id IN (?)", [[due, later, open]]);
    expect(found).to.deep.equal([due]);
    expect(await createOrderStates(world.pool).dueOf([])).to.deep.equal([]);
  });

  it('returns the states and buyers of existing orders', async () => {
    const [paid, expired] = (await ordersIn('paid', 'expired')) as [string, string];
    const rows = await createOrderStates(world.pool).notificationsOf([expired, paid, '1']);
    expect(rows).to.have.deep.members([
      { orderId: paid, userId: 'u0', requestId: 'k1', state: 'paid', reason: null },
      { orderId: expired, userId: 'u1', requestId: 'k1', state: 'expired', reason: null },
    ]);
    expect(await createOrderStates(world.pool).notificationsOf([])).to.deep.equal([]);
  });

  it('returns the states of existing orders', async () => {
    const [paid, expired] = await ordersIn('paid', 'expired');
    const states = await createOrderStates(world.pool).statesOf([paid as string, expired as string, '1']);
    expect([...states]).to.have.deep.members([
      [paid, 'paid'],
      [expired, 'expired'],
    ]);
    expect((await createOrderStates(world.pool).statesOf([])).size).to.equal(0);
  });
});
