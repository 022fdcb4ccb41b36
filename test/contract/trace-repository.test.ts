import { expect } from 'chai';
import { randomBytes } from 'node:crypto';
import { createTraceRepository } from '../../src/operate/trace/trace-repository.js';
import { createOrderRepository } from '../../src/mysql/order-repository.js';
import { draftSale } from '../chaos/harness/sales.js';
import { batchOf, purchaseOf } from '../helpers/sales.js';
import { ownMysqlWorld } from './repository-worlds.js';
import { useWorld } from './on-each-world.js';

/** Own database, because a search without index reads the whole table. */
describe('TraceRepository on mysql', () => {
  const world = useWorld(ownMysqlWorld);
  let saleId: string;
  before(async () => {
    ({ saleId } = await draftSale({ admin: world.sales }));
  });

  let lastId = 1n << 60n; // too large for a double
  /** @returns order id and batch id */
  async function insert(userId: string, requestId: string, batchId = randomBytes(12).toString('hex'), sale = saleId) {
    const orderId = String(++lastId);
    await world.pool.execute(
      'INSERT INTO orders (id, sale_id, user_id, request_id, batch_id, quantity, amount_cents, one_per_buyer, expires_at)' +
        ' VALUES (?, ?, ?, ?, ?, 1, 100, 0, UTC_TIMESTAMP(3) + INTERVAL 10 MINUTE)',
      [orderId, sale, userId, requestId, batchId],
    );
    await world.pool.execute('INSERT INTO order_ranges (sale_id, first_id, last_id, orders) VALUES (?, ?, ?, 1)', [
      sale,
      orderId,
      orderId,
    ]);
    return { orderId, batchId };
  }

  it('finds distinct purchases by order id, batch id or request id of a buyer, and narrows the result', async () => {
    const repository = createTraceRepository(world.pool);
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

  it('finds live and archived purchases by trace id, and returns the trace id of an order', async () => {
    const repository = createTraceRepository(world.pool);
    const traceId = randomBytes(16).toString('hex');
    const [ann, bob, cid] = [await insert('ann', 't1'), await insert('bob', 't2'), await insert('cid', 't3')];
    for (const { orderId } of [ann, bob]) {
      await world.pool.execute(`INSERT INTO order_traces (order_id, trace_id) VALUES (${orderId}, 0x${traceId})`);
    }
    await world.pool.execute(
      `INSERT INTO order_traces_archive (order_id, trace_id) VALUES (${cid.orderId}, 0x${traceId})`,
    );
    await world.pool.execute(
      `INSERT INTO orders_archive (id, sale_id, user_id, request_id, batch_id, quantity, amount_cents, one_per_buyer)
       SELECT id, sale_id, user_id, request_id, batch_id, quantity, amount_cents, one_per_buyer FROM orders WHERE id = ?`,
      [cid.orderId],
    );
    await world.pool.execute('DELETE FROM orders WHERE id = ?', [cid.orderId]);
    const users = async (search = {}, max = 10): Promise<string[]> =>
      (await repository.findByTrace(traceId, search, max)).map(({ userId }) => userId).sort();
    expect(await users()).to.deep.equal(['ann', 'bob', 'cid']);
    expect(await users({ userId: 'bob', saleId })).to.deep.equal(['bob']);
    expect(await users({ userId: 'bob', saleId: '999' })).to.deep.equal([]);
    expect(await users({}, 1)).to.have.length(1);
    expect(await repository.findByTrace(randomBytes(16).toString('hex'), {}, 10)).to.deep.equal([]);
    const traceOf = async (userId: string, requestId: string): Promise<string | null | undefined> =>
      (await repository.read({ userId, saleId, requestId })).order?.traceId;
    expect([await traceOf('ann', 't1'), await traceOf('cid', 't3')]).to.deep.equal([traceId, traceId]);
    await insert('dan', 't4');
    expect(await traceOf('dan', 't4')).to.equal(null);
  });

  it('finds rows of a worker by trace id, and stores none for an untraced purchase', async () => {
    const traceId = randomBytes(16).toString('hex');
    const orders = createOrderRepository(world.pool);
    const batch = batchOf({ saleId }, [{ ...purchaseOf('eve/x1'), traceId }, purchaseOf('fay/x2')]);
    const rows = batch.purchases.map((purchase, index) => {
      return { orderId: String(++lastId), batch, purchase, failure: index === 0 ? ('units_lost' as const) : null };
    });
    const terms = await orders.termsOf([saleId]);
    const plan = { terms, orders: rows, releases: [], oneByOne: new Set<string>(), paymentWindowMs: 60_000 };
    expect(await orders.write(plan)).to.include({ outcome: 'written' });
    expect(await createTraceRepository(world.pool).findByTrace(traceId, {}, 10)).to.deep.equal([
      { userId: 'eve', saleId, requestId: 'x1' },
    ]);
    const [stored] = await world.pool.query<{ n: string }>(
      'SELECT COUNT(*) AS n FROM order_traces WHERE order_id IN (?)',
      [rows.map(({ orderId }) => orderId)],
    );
    expect(Number(stored?.n), 'also of a purchase that failed').to.equal(1);
  });

  it('searches the whole table for a request id, newest first, in windows of any size', async () => {
    for (const user of ['u1', 'u2', 'u3', 'u4', 'u5']) {
      await insert(user, 'w1');
      await insert(user, 'other');
    }
    for (const windowRows of [2, 1000]) {
      const repository = createTraceRepository(world.pool, windowRows);
      const users = async (search = {}, max = 10): Promise<string[]> =>
        (await repository.walkForRequest('w1', search, max)).map(({ userId }) => userId);
      expect(await users(), `windows of ${windowRows}`).to.deep.equal(['u5', 'u4', 'u3', 'u2', 'u1']);
      expect(await users({}, 2)).to.deep.equal(['u5', 'u4']);
      expect(await users({ userId: 'u3', saleId })).to.deep.equal(['u3']);
      expect(await users({ saleId }, 2)).to.deep.equal(['u5', 'u4']);
      expect(await users({ saleId: '999' })).to.deep.equal([]);
    }
  });

  it('searches all orders of one sale, but only the newest orders of all sales', async () => {
    await insert('old', 'b1');
    await Promise.all(Array.from({ length: 30 }, (_, index) => insert(`u${index}`, 'b2')));
    const found = async (search: { readonly saleId?: string }, windowRows: number): Promise<number> =>
      (await createTraceRepository(world.pool, windowRows).walkForRequest('b1', search, 10)).length;
    expect(await found({}, 2)).to.equal(1);
    expect(await found({}, 1), 'it ended before').to.equal(0);
    expect(await found({ saleId }, 1)).to.equal(1);
  });

  it('reads the row together with exactly its own payments, refunds, coupon and outbox rows', async () => {
    const repository = createTraceRepository(world.pool);
    const { orderId, batchId } = await insert('eve', 'r1');
    const other = await insert('fay', 'r1');
    const run = (sql: string, ...values: string[]) => world.pool.execute(sql, values);
    await run("INSERT INTO payments (payment_id, order_id, amount_cents) VALUES ('p1', ?, 100)", orderId);
    const refund = 'INSERT INTO refunds (payment_id, order_id, amount_cents, reason)';
    await run(`${refund} VALUES ('p1', ?, 100, 'wrong_amount')`, orderId);
    await run("INSERT INTO coupons (order_id, sale_id, user_id) VALUES (?, ?, 'eve')", orderId, saleId);
    const ref = { userId: 'eve', saleId, requestId: 'r1' };
    expect((await repository.read(ref)).coupon?.hasCode, 'without coupon terms').to.equal(false);
    const code = 'INSERT INTO coupon_codes (code, order_id, sale_id, user_id, currency, min_cents, expires_at)';
    await run(`${code} VALUES ('7KQ2MZP4WX', ?, ?, 'eve', 'EUR', 0, UTC_TIMESTAMP(3))`, orderId, saleId);
    const addOutboxRow = async (kind: string, key: string, payload: unknown): Promise<string> => {
      const sql = 'INSERT INTO outbox (kind, `key`, payload) VALUES (?, ?, ?)';
      return (await world.pool.execute(sql, [kind, key, JSON.stringify(payload)])).insertId;
    };
    const ofOrder = [
      await addOutboxRow('batch_recorded', batchId, { orders: [orderId] }),
      await addOutboxRow('orders_moved', other.orderId, { orders: [other.orderId, orderId] }),
    ];
    await addOutboxRow('batch_recorded', other.batchId, { orders: [other.orderId] });
    await addOutboxRow('orders_moved', other.orderId, { orders: [`${orderId}0`] });
    const [first = ''] = ofOrder;
    await run('UPDATE outbox SET done_at = UTC_TIMESTAMP(3), attempts = 2 WHERE id = ?', first);

    const found = await repository.read(ref);
    expect(found.order).to.include({ orderId, batchId, userId: 'eve', state: 'pending_payment' });
    expect(found.order?.updatedAtMs).to.be.within(found.nowMs - 60_000, found.nowMs);
    expect(found.payments.map(({ paymentId, amountCents }) => [paymentId, amountCents])).to.deep.equal([['p1', 100]]);
    expect(found.refunds[0]).to.include({ paymentId: 'p1', reason: 'wrong_amount', state: 'due' });
    expect(found.coupon?.atMs).to.be.within(found.nowMs - 60_000, found.nowMs);
    expect(found.coupon?.hasCode).to.equal(true);
    expect(found.outboxRows.map(({ outboxId }) => outboxId)).to.deep.equal(ofOrder);
    expect(found.outboxRows[0]).to.include({ kind: 'batch_recorded', attempts: 2 });
    expect([found.outboxRows[0]?.doneAtMs === null, found.outboxRows[1]?.doneAtMs]).to.deep.equal([false, null]);

    const none = await repository.read({ userId: 'unknown', saleId, requestId: 'r1' });
    expect([none.order, none.outboxRows, none.coupon]).to.deep.equal([null, [], null]);
  });
});
