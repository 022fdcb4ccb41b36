import { expect } from 'chai';
import { newBatchId } from '../../src/core/batch.js';
import { silentLog } from '../helpers/silent-log.js';
import { connectRedis, type RedisConnection } from '../../src/redis/connection.js';
import { bucketKeys } from '../../src/redis/keys.js';
import { createSaleStore } from '../../src/redis/sale-store.js';
import { createBatchStore } from '../../src/redis/batch-store.js';
import { createStockStore } from '../../src/redis/stock-store.js';
import { createTraceStore } from '../../src/operate/trace/trace-store.js';
import { randomBytes } from 'node:crypto';
import { batchOf, liveOrderOf, purchaseOf, purchasesOf, saleOf } from '../helpers/sales.js';
import { stackEnv } from '../helpers/stack-env.js';

describe('TraceStore on redis', () => {
  let redis: RedisConnection;
  before(async () => {
    redis = await connectRedis({ url: stackEnv().REDIS_URL, replyTimeoutMs: 5000, connectTimeoutMs: 3000 }, silentLog);
  });
  after(() => redis?.close());

  const openSale = async (stock = 100) => {
    const sale = saleOf({ stock });
    const admin = createSaleStore(redis);
    await admin.warm(sale);
    await admin.setState(sale, 'open');
    return { sale, ref: { saleId: sale.saleId, bucket: 0 } };
  };

  it('returns a batch as pending with its body, recorded without it, aborted, parked or unknown', async () => {
    const { sale, ref } = await openSale();
    const [stock, batches, trace] = [
      createStockStore(redis, silentLog),
      createBatchStore(redis),
      createTraceStore(redis),
    ];
    const batch = batchOf(sale, purchasesOf('u1*2', 'u2'));
    expect(await trace.readBatch(ref, batch.batchId)).to.deep.equal({ marker: null, body: null, pendingSinceMs: null });
    expect((await stock.deduct(batch)).outcome).to.equal('deducted');
    const pending = await trace.readBatch(ref, batch.batchId);
    expect(pending).to.deep.include({ marker: 'deducted', body: batch.body });
    const [seconds] = await redis.redis.time();
    expect(pending.pendingSinceMs).to.be.within((Number(seconds) - 60) * 1000, (Number(seconds) + 1) * 1000);
    expect([await trace.unitsOf(ref, 'u1'), await trace.unitsOf(ref, 'u3')]).to.deep.equal([2, 0]);

    const held = { state: 'held', batchId: batch.batchId, quantity: 2 };
    expect(await trace.entryOf(ref, 'u1', 'k1')).to.deep.equal(held);
    expect(await trace.entryOf(ref, 'u1', 'k2')).to.equal(null);

    await batches.park(batch);
    const parked = { marker: 'deducted', body: batch.body, pendingSinceMs: null };
    expect(await trace.readBatch(ref, batch.batchId)).to.deep.equal(parked);
    await batches.markRecorded([{ batch, orders: [liveOrderOf('u1', '42')] }]);
    expect(await trace.readBatch(ref, batch.batchId)).to.deep.equal({ ...parked, body: null });

    const other = batchOf(sale, purchasesOf('u9'), newBatchId());
    expect(await stock.resolve(other)).to.equal('aborted');
    expect((await trace.readBatch(ref, other.batchId)).marker).to.equal('aborted');

    await redis.redis.hset(bucketKeys(ref).sale, 'run_id', 'another');
    const ordered = { state: 'ordered', orderId: '42', quantity: 2 };
    expect(await trace.entryOf(ref, 'u1', 'k1'), 'also after a restart').to.deep.equal(ordered);
  });

  it('returns traced batches with their bodies until they are recorded or parked', async () => {
    const { sale, ref } = await openSale(1000);
    const [stock, batches, trace] = [
      createStockStore(redis, silentLog),
      createBatchStore(redis),
      createTraceStore(redis),
    ];
    const traceId = randomBytes(16).toString('hex');
    const traced = (text: string) => ({ ...purchaseOf(text), traceId });
    const [one, two] = [batchOf(sale, [traced('ann'), purchaseOf('bob')]), batchOf(sale, [traced('cid')])];
    for (const batch of [one, two]) expect((await stock.deduct(batch)).outcome).to.equal('deducted');
    for (let i = 0; i < 120; i++) await stock.deduct(batchOf(sale, [purchaseOf(`u${i}`)]));
    expect(await trace.pendingWith(ref, traceId)).to.have.members([one.body, two.body]);
    expect(await trace.pendingWith(ref, randomBytes(16).toString('hex'))).to.deep.equal([]);
    await batches.markRecorded([{ batch: one, orders: [liveOrderOf('ann', '42'), liveOrderOf('bob', '43')] }]);
    expect(await trace.pendingWith(ref, traceId)).to.deep.equal([two.body]);
    await batches.park(two);
    expect(await trace.pendingWith(ref, traceId)).to.deep.equal([]);
    expect(await trace.pendingWith({ saleId: '1', bucket: 7 }, traceId)).to.deep.equal([]);
  });

  it('returns the buyers of exactly one request id among any number of requests', async () => {
    const { sale, ref } = await openSale(5000);
    const many = Array.from({ length: 900 }, (_, index) => `u${index}/k${index}`);
    const alike = ['ann/k1x', 'bob/xk1', 'k1/other', 'cid/K1'];
    const stock = createStockStore(redis, silentLog);
    expect((await stock.deduct(batchOf(sale, purchasesOf(...many, ...alike)))).outcome).to.equal('deducted');
    expect((await stock.deduct(batchOf(sale, purchasesOf('dan/k1')))).outcome).to.equal('deducted');
    const trace = createTraceStore(redis);
    expect(await trace.buyersOf(ref, 'k1', 10)).to.have.members(['u1', 'dan']);
    expect(await trace.buyersOf(ref, 'k1', 1)).to.have.length(1);
    expect(await trace.buyersOf(ref, 'unknown', 10)).to.deep.equal([]);
  });
});
