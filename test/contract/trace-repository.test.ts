import { expect } from 'chai';
import { randomBytes } from 'node:crypto';
import { createTraceRepository } from '../../src/mysql/trace-repository.js';
import type { MysqlPool } from '../../src/mysql/pool.js';
import { draftSale } from '../chaos/harness/sales.js';
import { ownMysqlWorld, type MysqlWorld } from './repository-worlds.js';

/** In a database of its own: a search without index reads the whole table. */
describe('TraceRepository on mysql', () => {
  let world: MysqlWorld;
  let pool: MysqlPool;
  let saleId: string;
  before(async () => {
    world = await ownMysqlWorld();
    ({ pool } = world);
    ({ saleId } = await draftSale({ admin: world.sales }));
  });
  after(() => world?.close());

  let lastId = 1n << 60n; // beyond what a double can tell apart
  /** @returns order id and batch id */
  async function insert(userId: string, requestId: string, batchId = randomBytes(12).toString('hex'), sale = saleId) {
    const orderId = String(++lastId);
    await pool.execute(
      'INSERT INTO orders (id, sale_id, user_id, request_id, batch_id, quantity, amount_cents, one_per_buyer, expires_at)' +
        ' VALUES (?, ?, ?, ?, ?, 1, 100, 0, UTC_TIMESTAMP(3) + INTERVAL 10 MINUTE)',
      [orderId, sale, userId, requestId, batchId],
    );
    await pool.execute('INSERT INTO order_ranges (sale_id, first_id, last_id, orders) VALUES (?, ?, ?, 1)', [
      sale,
      orderId,
      orderId,
    ]);
    return { orderId, batchId };
  }

  it('finds purchases by order id, by batch id and by request id of a buyer; narrows them; distinct', async () => {
    const repository = createTraceRepository(pool);
    const { batchId, orderId } = await insert('ann', 'f1');
    await insert('bob', 'f1', batchId);
    const users = async (id: string, search = {}, max = 10): Promise<string[]> =>
      (await repository.findRequests(id, search, max)).map(({ userId }) => userId);
    expect(await repository.findRequests(orderId, {}, 10)).to.deep.equal([{ userId: 'ann', saleId, requestId: 'f1' }]);
    expect(await users(`${orderId}x`)).to.deep.equal([]);
    expect(await users(String(BigInt(orderId) + 1000n))).to.deep.equal([]);
    expect(await users(batchId)).to.deep.equal(['ann', 'bob']);
    expect(await users(batchId, {}, 1)).to.deep.equal(['ann']);
    expect(await users(batchId, { userId: 'bob' })).to.deep.equal(['bob']);
    expect(await users(batchId, { saleId: '999' })).to.deep.equal([]);
    expect(await users('f1', { userId: 'bob' })).to.deep.equal(['bob']);
    expect(await users('f1'), 'without the buyer it would take a walk of the table').to.deep.equal([]);
    await insert(orderId, orderId, orderId);
    expect(await users(orderId, { userId: orderId }), 'one id that means a purchase twice').to.deep.equal([orderId]);
  });

  it('walks the whole table for a request id, newest first, whatever the window', async () => {
    for (const user of ['u1', 'u2', 'u3', 'u4', 'u5']) {
      await insert(user, 'w1');
      await insert(user, 'other');
    }
    for (const windowRows of [1, 2, 3, 1000]) {
      const repository = createTraceRepository(pool, windowRows);
      const users = async (search = {}, max = 10): Promise<string[]> =>
        (await repository.walkForRequest('w1', search, max)).map(({ userId }) => userId);
      expect(await users(), `windows of ${windowRows}`).to.deep.equal(['u5', 'u4', 'u3', 'u2', 'u1']);
      expect(await users({}, 2)).to.deep.equal(['u5', 'u4']);
      expect(await users({ userId: 'u3', saleId })).to.deep.equal(['u3']);
      expect(await users({ saleId }, 2)).to.deep.equal(['u5', 'u4']);
      expect(await users({ saleId: '999' })).to.deep.equal([]);
    }
  });

  it('over all sales it walks the newest orders only, however long the table is; of one sale all of them', async () => {
    await insert('old', 'b1');
    for (let i = 0; i < 30; i++) await insert(`u${i}`, 'b2');
    const found = async (search: { readonly saleId?: string }, windowRows: number): Promise<number> =>
      (await createTraceRepository(pool, windowRows).walkForRequest('b1', search, 10)).length;
    expect(await found({}, 2)).to.equal(1);
    expect(await found({}, 1), 'it ended before').to.equal(0);
    expect(await found({ saleId }, 1)).to.equal(1);
  });

  it('reads the row with its payments, refunds, coupon and outbox rows, and no others', async () => {
    const repository = createTraceRepository(pool);
    const { orderId, batchId } = await insert('eve', 'r1');
    const other = await insert('fay', 'r1');
    await pool.execute("INSERT INTO payments (payment_id, order_id, amount_cents) VALUES ('p1', ?, 100)", [orderId]);
    const refund =
      "INSERT INTO refunds (payment_id, order_id, amount_cents, reason) VALUES ('p1', ?, 100, 'wrong_amount')";
    await pool.execute(refund, [orderId]);
    await pool.execute("INSERT INTO coupons (order_id, sale_id, user_id) VALUES (?, ?, 'eve')", [orderId, saleId]);
    const addOutboxRow = async (kind: string, key: string, payload: unknown): Promise<string> => {
      const sql = 'INSERT INTO outbox (kind, `key`, payload) VALUES (?, ?, ?)';
      return (await pool.execute(sql, [kind, key, JSON.stringify(payload)])).insertId;
    };
    const ofOrder = [
      await addOutboxRow('batch_recorded', batchId, { orders: [orderId] }),
      await addOutboxRow('orders_moved', other.orderId, { orders: [other.orderId, orderId] }),
    ];
    await addOutboxRow('batch_recorded', other.batchId, { orders: [other.orderId] });
    await addOutboxRow('orders_moved', other.orderId, { orders: [`${orderId}0`] });
    await pool.execute('UPDATE outbox SET done_at = UTC_TIMESTAMP(3), attempts = 2 WHERE id = ?', [
      ofOrder[0] as string,
    ]);

    const found = await repository.read({ userId: 'eve', saleId, requestId: 'r1' });
    expect(found.order).to.include({ orderId, batchId, userId: 'eve', state: 'pending_payment' });
    expect(found.order?.updatedAtMs).to.be.within(found.nowMs - 60_000, found.nowMs);
    expect(found.payments.map(({ paymentId, amountCents }) => [paymentId, amountCents])).to.deep.equal([['p1', 100]]);
    expect(found.refunds[0]).to.include({ paymentId: 'p1', reason: 'wrong_amount', state: 'due' });
    expect(found.couponAtMs).to.be.within(found.nowMs - 60_000, found.nowMs);
    expect(found.outboxRows.map(({ outboxId }) => outboxId)).to.deep.equal(ofOrder);
    expect(found.outboxRows[0]).to.include({ kind: 'batch_recorded', attempts: 2 });
    expect([found.outboxRows[0]?.doneAtMs === null, found.outboxRows[1]?.doneAtMs]).to.deep.equal([false, null]);

    const none = await repository.read({ userId: 'unknown', saleId, requestId: 'r1' });
    expect([none.order, none.outboxRows, none.couponAtMs]).to.deep.equal([null, [], null]);
  });
});
