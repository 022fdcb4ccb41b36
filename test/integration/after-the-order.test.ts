import { expect } from 'chai';
import { newBatchId } from '../../src/core/batch.js';
import type { OrderState } from '../../src/core/order.js';
import { composeOrderId } from '../../src/core/order-id.js';
import { createOrderStates } from '../../src/mysql/order-repository.js';
import { brokerOf } from '../helpers/broker.js';
import { signaturesOf } from '../helpers/signatures.js';
import { silentLog } from '../helpers/silent-log.js';
import { createDeadlineChannel } from '../../src/rocketmq/plain-channels.js';
import { Buyers, userIds } from '../chaos/harness/buyers.js';
import { OrderEventListener } from '../chaos/harness/listeners.js';
import { ask } from '../chaos/harness/http.js';
import { expectInvariants } from '../helpers/invariants.js';
import { openSale } from '../chaos/harness/sales.js';
import type { Program } from '../chaos/harness/programs.js';
import { recordBatch } from '../chaos/harness/batches.js';

import { useSystem } from '../helpers/system.js';
import { until } from '../chaos/harness/wait.js';

describe('follow-ups of an order with two keepers', () => {
  let api: Program;
  let keepers: Program[];
  let ear: OrderEventListener;
  const system = useSystem(async ({ stack, programs }) => {
    const env = { KEEPER_EVERY_MS: '500', OUTBOX_EVERY_MS: '100' };
    [ear, api, , ...keepers] = await Promise.all([
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
  const metric = async (name: string): Promise<number> => {
    const counts = keepers.map(async ({ operatorsUrl }) => {
      const { text } = await ask(`${operatorsUrl}/metrics`);
      return Number(new RegExp(`^${name.replace(/[{}]/g, '\\$&')}[^}]*\\} (\\S+)$`, 'm').exec(text)?.[1] ?? 0);
    });
    return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
  };
  const couponsOf = (saleId: string) =>
    system.stack.mysql.query<{ order_id: string }>('SELECT order_id FROM coupons WHERE sale_id = ?', [saleId]);
  /** Pays like a payment does. */
  const pay = (orderId: string, saleId: string): Promise<unknown> =>
    system.stack.mysql.transaction(async (tx) => {
      const sql = "UPDATE orders SET state = 'paid', paid_at = UTC_TIMESTAMP(3) WHERE id = ?";
      expect((await tx.execute(`${sql} AND state = 'pending_payment'`, [orderId])).affectedRows).to.equal(1);
      const payload = JSON.stringify({ move: 'paid', saleId, orders: [orderId] });
      await tx.execute("INSERT INTO outbox (kind, `key`, payload) VALUES ('orders_moved', ?, ?)", [orderId, payload]);
    });

  it('end unpaid orders at their deadline and return their units, while a paid order stays and earns a coupon', async () => {
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

  it('publish each of many rows once from two keepers [C1]', async () => {
    const BATCHES = 40;
    const { saleId } = await openSale(system.stack, { stock: 100 });
    const before = await metric('seckill_outbox_published_rows_total{kind="batch_recorded"');
    const orderIds: string[] = [];
    for (let nth = 0; nth < BATCHES; nth++) {
      orderIds.push(...(await recordBatch(system.stack, saleId, 2)).orderIds);
    }
    await until('all events are published', () => ear.ordersOf(saleId, 'order.created').length >= 2 * BATCHES);
    expect(ear.ordersOf(saleId, 'order.created')).to.deep.equal([...orderIds].sort());
    const ids = ear.eventsOf(saleId).map(({ eventId }) => eventId);
    expect(new Set(ids).size).to.equal(ids.length);
    const published = async () => (await metric('seckill_outbox_published_rows_total{kind="batch_recorded"')) - before;
    await until('both have counted', async () => (await published()) >= BATCHES);
    expect((await expectInvariants(system.stack, saleId)).sold).to.equal(2 * BATCHES);
  });

  it('make a deadline that arrives before its order wait for the order [M6]', async () => {
    const { stack } = system;
    const { saleId } = await openSale(stack, { stock: 5 });
    const orderId = composeOrderId(Date.now(), 254, 'late', 0);
    const channel = await createDeadlineChannel({
      ...brokerOf(stack.env),
      signatures: signaturesOf(stack.env),
      log: silentLog,
    });
    const later = 'seckill_consumed_messages_total{group="seckill-order-expirer",verdict="later"';
    const before = await metric(later);
    await channel.publish({ batchId: newBatchId(), saleId, deadlineAtMs: Date.now() - 1_000, orders: [orderId] });
    await channel.close();
    await until('it waits', async () => (await metric(later)) > before);

    const sql =
      'INSERT INTO orders (id, sale_id, user_id, request_id, batch_id, quantity, amount_cents, one_per_buyer, expires_at)' +
      " VALUES (?, ?, 'late', 'k1', 'batch-1', 1, 1999, 1, UTC_TIMESTAMP(3))";
    await stack.mysql.execute(sql, [orderId, saleId]);
    await stack.mysql.execute('UPDATE sales SET sold = sold + 1 WHERE id = ?', [saleId]);
    const state = async (): Promise<OrderState | undefined> => (await statesOf([orderId])).get(orderId);
    await until('it ends', async () => (await state()) === 'expired');
  });

  it('publish the outbox backlog for an alert', async () => {
    for (const { operatorsUrl } of keepers) {
      const { text } = await ask(`${operatorsUrl}/metrics`);
      for (const kind of ['batch_recorded', 'orders_moved', 'release']) {
        expect(text).to.match(new RegExp(`^seckill_outbox_undone_rows\\{kind="${kind}"[^}]*\\} \\d+$`, 'm'));
        expect(text).to.match(new RegExp(`^seckill_outbox_oldest_seconds\\{kind="${kind}"[^}]*\\} [\\d.]+$`, 'm'));
      }
    }
  });
});
