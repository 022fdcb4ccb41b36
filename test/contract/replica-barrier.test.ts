import { expect } from 'chai';
import type { Sale } from '../../src/core/sale.js';
import { silentLog } from '../helpers/silent-log.js';
import { connectRedis, type RedisConnection } from '../../src/redis/connection.js';
import { withReplicaBarrier, openReplicaBarrier, type ReplicaBarrier } from '../../src/redis/replica-barrier.js';
import { createSaleStore } from '../../src/redis/sale-store.js';
import { createBatchStore } from '../../src/redis/batch-store.js';
import { createStockStore } from '../../src/redis/stock-store.js';
import { redisServerBinary, startPrivateRedis, type PrivateRedis } from '../helpers/private-redis.js';
import { batchOf, liveOrderOf, purchasesOf, saleOf } from '../helpers/sales.js';
import { until } from '../chaos/harness/wait.js';

/** Enough for a replica on a busy machine. */
const REPLICAS_MS = 1_500;

async function openSale(connection: RedisConnection): Promise<Sale> {
  const sale = saleOf({ stock: 10, limitPerBuyer: 2 }, Date.now());
  const sales = createSaleStore(connection);
  await sales.warm(sale);
  await sales.setState(sale, 'open');
  return sale;
}

describe('replica barrier', () => {
  let master: PrivateRedis;
  let replica: PrivateRedis;
  let connection: RedisConnection;
  let barrier: ReplicaBarrier;

  before(async () => {
    const binary = redisServerBinary();
    if (binary === null) throw new Error('no redis-server: start the stack once, or set SECKILL_REDIS_SERVER');
    master = await startPrivateRedis(binary);
    const { port } = new URL(master.url);
    replica = await startPrivateRedis(binary, { args: ['--replicaof', '127.0.0.1', port] });
    const options = { url: master.url, replyTimeoutMs: 2000, connectTimeoutMs: 2000 };
    connection = await connectRedis(options, silentLog);
    const online = async (): Promise<boolean> => (await connection.redis.info('replication')).includes('state=online');
    await until('the replica follows', online);
    barrier = await openReplicaBarrier(options, { replicas: 1, timeoutMs: REPLICAS_MS }, silentLog);
    await until('the replica has caught up', () => barrier.pass());
  });

  afterEach(() => replica.signal('SIGCONT'));

  after(async () => {
    await barrier.close();
    await connection.close();
    await Promise.all([master.stop(), replica.stop()]);
  });

  it('passes once the replica has the writes, but not while the replica is stopped', async () => {
    expect(await barrier.pass()).to.equal(true);
    replica.signal('SIGSTOP');
    expect(await barrier.pass()).to.equal(false);
    replica.signal('SIGCONT');
    await until('the replica has caught up', () => barrier.pass());
  });

  it('waits once for all calls that arrive during a wait', async () => {
    const waits = async (): Promise<number> =>
      Number(/cmdstat_wait:calls=(\d+)/.exec(await connection.redis.info('commandstats'))?.[1] ?? 0);
    const before = await waits();
    const passed = await Promise.all(Array.from({ length: 50 }, () => barrier.pass()));
    expect(passed.every((one) => one)).to.equal(true);
    expect((await waits()) - before).to.be.at.most(2);
  });

  it('returns unreplicated for a deduct that a fail-over could undo', async () => {
    const sale = await openSale(connection);
    const store = withReplicaBarrier(createStockStore(connection, silentLog), barrier);
    const [first, second] = [batchOf(sale, purchasesOf('u1')), batchOf(sale, purchasesOf('u2'))];
    expect(await store.deduct(first)).to.deep.equal({ outcome: 'deducted' });
    replica.signal('SIGSTOP');
    expect(await store.deduct(second)).to.deep.equal({ outcome: 'unreplicated' });
    expect(await store.resolve(second)).to.equal('unreplicated');
    replica.signal('SIGCONT');
    await until('the replica has caught up', () => barrier.pass());
    expect(await store.resolve(second)).to.equal('deducted');
    expect(await store.deduct(second)).to.deep.equal({ outcome: 'already_deducted' });
  });

  it('returns unreplicated for a replay of either script until the replica has the units', async () => {
    const sale = await openSale(connection);
    const store = withReplicaBarrier(createStockStore(connection, silentLog), barrier);
    const recorded = batchOf(sale, purchasesOf('ann'));
    expect(await store.deduct(recorded)).to.deep.equal({ outcome: 'deducted' });
    const orders = [liveOrderOf('ann', '101')];
    await createBatchStore(connection).markRecorded([{ batch: recorded, orders }]);
    replica.signal('SIGSTOP');
    const batch = batchOf(sale, purchasesOf('bob'));
    expect(await store.deduct(batch)).to.deep.equal({ outcome: 'unreplicated' });

    const held = { outcome: 'replayed', entry: { state: 'held', batchId: batch.batchId, quantity: 1 } };
    const ordered = { outcome: 'replayed', entry: { state: 'ordered', orderId: '101', quantity: 1 } };
    const unknown = { outcome: 'outcome_unknown' };
    const asked = purchasesOf('ann', 'bob', 'cid');
    const precheck = async (): Promise<readonly unknown[]> => (await store.precheck(batch, asked)).answers;
    const deduct = () => store.deduct(batchOf(sale, asked));
    expect(await precheck(), 'an order is in MySQL, whatever Redis loses').to.deep.equal([ordered, unknown, null]);
    expect(await deduct()).to.deep.equal({ outcome: 'refused', answers: [ordered, unknown, null] });
    replica.signal('SIGCONT');
    await until('the replica has caught up', () => barrier.pass());
    expect(await precheck()).to.deep.equal([ordered, held, null]);
    expect(await deduct()).to.deep.equal({ outcome: 'refused', answers: [ordered, held, null] });
  });

  it('is skipped if no purchase is accepted', async () => {
    const sale = await openSale(connection);
    let asked = 0;
    const counting: ReplicaBarrier = { ...barrier, pass: async () => (asked++, false) };
    const store = withReplicaBarrier(createStockStore(connection, silentLog), counting);
    await store.precheck({ saleId: sale.saleId, bucket: 0 }, purchasesOf('ann', 'bob*9'));
    await store.deduct(batchOf(sale, purchasesOf('ann*9')));
    expect(asked).to.equal(0);
  });
});
