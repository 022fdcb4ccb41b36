import { expect } from 'chai';
import type { OrderState } from '../../src/core/order.js';
import { createOrderStates } from '../../src/mysql/order-repository.js';
import { Buyers, userIds } from '../chaos/harness/buyers.js';
import { OrderEventListener } from '../chaos/harness/listeners.js';
import { expectInvariants } from '../helpers/invariants.js';
import { openSale } from '../chaos/harness/sales.js';
import type { Program } from '../chaos/harness/programs.js';
import { useSystem } from '../helpers/system.js';
import { until } from '../chaos/harness/wait.js';

describe('follow-ups of an order with two keepers', () => {
  let api: Program;
  let ear: OrderEventListener;
  const system = useSystem(async ({ stack, programs }) => {
    const env = { KEEPER_EVERY_MS: '500', OUTBOX_EVERY_MS: '100' };
    [ear, api] = await Promise.all([
      OrderEventListener.open(stack.env),
      programs.start('api'),
      programs.start('worker'),
      programs.start('keeper', { env }),
      programs.start('keeper', { env }),
    ]);
  });
  after(() => ear?.close());

  const statesOf = (orderIds: readonly string[]): Promise<Map<string, OrderState>> =>
    createOrderStates(system.stack.mysql).statesOf(orderIds);
  const couponsOf = (saleId: string) =>
    system.stack.mysql.query<{ order_id: string }>('SELECT order_id FROM coupons WHERE sale_id = ?', [saleId]);
  const pay = (orderId: string, saleId: string): Promise<unknown> =>
    system.stack.mysql.transaction(async (tx) => {
      const sql = "UPDATE orders SET state = 'paid', paid_at = UTC_TIMESTAMP(3) WHERE id = ?";
      expect((await tx.execute(`${sql} AND state = 'pending_payment'`, [orderId])).affectedRows).to.equal(1);
      const payload = JSON.stringify({ move: 'paid', saleId, orders: [orderId] });
      await tx.execute("INSERT INTO outbox (kind, `key`, payload) VALUES ('orders_moved', ?, ?)", [orderId, payload]);
    });

  it('expire unpaid orders and return their units, and issue a coupon for a paid order', async () => {
    const { stack } = system;
    const { saleId } = await openSale(stack, { stock: 20 });
    const buyers = new Buyers(saleId, stack.env.JWT_SECRET, () => [api.url]);
    const users = userIds(5);
    for (const answer of await buyers.rush(users, users.length)) expect(answer?.status).to.equal(202);
    const orderIds: string[] = [];
    for (const user of users) {
      const { json } = await buyers.settled(user);
      expect(json.status, user).to.equal('ordered');
      orderIds.push(String(json.orderId));
    }
    const [paidOrder = '', ...unpaid] = orderIds;
    await pay(paidOrder, saleId);
    expect([...(await statesOf(unpaid)).values()], 'not before their time').to.not.include('expired');
    const due = "UPDATE orders SET expires_at = UTC_TIMESTAMP(3) WHERE sale_id = ? AND state = 'pending_payment'";
    await stack.mysql.execute(due, [saleId]);

    const ended = async (): Promise<boolean> =>
      [...(await statesOf(unpaid)).values()].every((state) => state === 'expired');
    await until('the unpaid orders end', ended);
    const figures = await expectInvariants(stack, saleId, buyers.opLog);
    expect(figures).to.include({ rows: 5, sold: 1, unitsLeft: 19 });
    expect((await statesOf([paidOrder])).get(paidOrder)).to.equal('paid');

    await until('all events are published', () => ear.ordersOf(saleId, 'order.expired').length === 4);
    expect(ear.ordersOf(saleId, 'order.created')).to.deep.equal([...orderIds].sort());
    expect(ear.ordersOf(saleId, 'order.expired')).to.deep.equal([...unpaid].sort());
    expect(ear.ordersOf(saleId, 'order.paid')).to.deep.equal([paidOrder]);
    await until('the coupon is there', async () => (await couponsOf(saleId)).length > 0);
    expect(await couponsOf(saleId)).to.deep.equal([{ order_id: paidOrder }]);
  });
});
