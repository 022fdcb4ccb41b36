import { expect } from 'chai';
import sinon from 'sinon';
import { silentLog } from '../helpers/silent-log.js';
import { connectRedis, type RedisConnection } from '../../src/redis/connection.js';
import { bucketKeys } from '../../src/redis/keys.js';
import { createSaleStore } from '../../src/redis/sale-store.js';
import { createBatchStore } from '../../src/redis/batch-store.js';
import { createStockStore } from '../../src/redis/stock-store.js';
import { batchOf, purchasesOf, saleOf } from '../helpers/sales.js';
import { stackEnv } from '../helpers/stack-env.js';

describe('stale pending batches during a concurrent markRecorded', () => {
  let connection: RedisConnection;
  before(async () => {
    const url = stackEnv().REDIS_URL;
    connection = await connectRedis({ url, replyTimeoutMs: 2000, connectTimeoutMs: 2000 }, silentLog);
  });
  after(() => connection.close());

  it('do not include a batch without a body if it is recorded between the two reads', async () => {
    const sale = saleOf();
    await createSaleStore(connection).warm(sale);
    await createSaleStore(connection).setState(sale, 'open');
    const [recorded, damaged, waiting] = ['a', 'b', 'c'].map((user) => batchOf(sale, purchasesOf(user)));
    if (!recorded || !damaged || !waiting) throw new Error('three batches are needed');
    for (const batch of [recorded, damaged, waiting]) await createStockStore(connection, silentLog).deduct(batch);
    const { redis } = connection;
    await redis.set(bucketKeys({ saleId: sale.saleId, bucket: 0 }).tx + damaged.batchId, 'deducted');

    const store = createBatchStore(connection);
    const readMarkers = redis.mget.bind(redis) as (...keys: unknown[]) => Promise<(string | null)[]>;
    const markFirst = sinon.fake(async (...keys: unknown[]) => {
      await store.markRecorded([{ batch: recorded, orders: [] }]);
      return readMarkers(...keys);
    });
    sinon.replace(redis, 'mget', markFirst as never);
    const stale = await store.stalePending({ saleId: sale.saleId, bucket: 0 }, 0, 10);

    expect(markFirst.callCount, 'it was marked recorded in between').to.equal(1);
    const bodies = new Map(stale.map(({ batchId, body }) => [batchId, body]));
    expect([...bodies.keys()]).to.have.members([damaged.batchId, waiting.batchId]);
    expect(bodies.get(damaged.batchId), 'a real loss is still reported').to.equal(null);
    expect(bodies.get(waiting.batchId)).to.equal(waiting.body);
  });
});
