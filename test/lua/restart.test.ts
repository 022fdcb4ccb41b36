import { expect } from 'chai';
import { Redis } from 'ioredis';
import { found, until } from '../chaos/harness/wait.js';
import { silentLog } from '../helpers/silent-log.js';
import type { RepairStore } from '../../src/core/ports/repair-stores.js';
import type { StockStore } from '../../src/core/ports/stock-store.js';
import { REPAIR_ASKS_KEY } from '../../src/redis/keys.js';
import { createRepairStore } from '../../src/redis/repair-store.js';
import { createBatchStore } from '../../src/redis/batch-store.js';
import { createStockStore } from '../../src/redis/stock-store.js';
import {
  redisServerBinary,
  redisServerOrSkip,
  startDurableRedis,
  startPrivateRedis,
  type DurableRedis,
} from '../helpers/private-redis.js';
import { ScriptRunner, type SaleScripts } from './script-runner.js';
import { batchOf, purchasesOf } from '../helpers/sales.js';

// The connections are older than the restart, as in programs that keep running.
describe('lua: a Redis that is killed and restarts from its log', () => {
  let server: DurableRedis | undefined;
  let runner: ScriptRunner;
  let sale: SaleScripts;
  let stock: StockStore;
  let repair: RepairStore;
  const ref = () => ({ saleId: sale.sale.saleId, bucket: 0 });

  before(async function () {
    server = await startDurableRedis(redisServerOrSkip(this));
    runner = await ScriptRunner.open(server.url);
    stock = createStockStore(runner.connection, silentLog);
    repair = createRepairStore(runner.connection);
  });
  beforeEach(async () => {
    sale = await runner.sale({ stock: 5 });
  });
  after(async () => {
    await runner?.close();
    await server?.stop();
  });

  const deducted = async (text: string) => {
    const batch = batchOf(sale.sale, purchasesOf(text));
    expect(await stock.deduct(batch)).to.deep.equal({ outcome: 'deducted' });
    return batch;
  };
  const restart = async (cutBytes?: number): Promise<void> => {
    const { redis } = runner.connection;
    const runId = async (): Promise<string | undefined> => /run_id:(\w+)/.exec(await redis.info('server'))?.[1];
    const before = await runId();
    await server?.restart(cutBytes);
    await until('it is connected again', () => redis.status === 'ready', { everyMs: 10 });
    expect(await runId(), 'the fault happened').not.to.equal(before);
  };

  it('loses nothing, but accepts no purchase until the bucket is rebuilt [R1]', async () => {
    const held = await deducted('u1');
    const before = await sale.snapshot([held.batchId]);
    await restart();
    expect(await sale.snapshot([held.batchId]), 'nothing is lost').to.deep.equal(before);

    const open = batchOf(sale.sale, purchasesOf('u2'));
    expect((await stock.precheck(ref(), open.purchases)).answers).to.deep.equal([{ outcome: 'loading' }]);
    expect(await stock.deduct(open)).to.deep.equal({ outcome: 'stale_epoch' });
    expect(await stock.resolve(open)).to.equal('no_answer');
    expect(await stock.resolve(held)).to.equal('deducted');
    expect(await stock.findRequest(ref(), 'u1', 'k1')).to.equal('unsure');
    expect((await stock.readSale(ref()))?.state).to.equal('repair');
    expect(await repair.statusOf([ref()])).to.deep.equal([{ state: 'open', epoch: 1, sameServer: false }]);

    expect(await repair.lock(ref(), 'one', 60_000)).to.equal('locked');
    await repair.stage(ref(), 'one', [['u1/k1', { state: 'held', batchId: held.batchId, quantity: 1 }]]);
    const { opensAtMs, closesAtMs, limitPerBuyer, buckets } = sale.sale;
    const terms = { state: 'open', opensAtMs, closesAtMs, limitPerBuyer, buckets } as const;
    const rebuilt = { unitsLeft: 4, epoch: 2, ...terms };
    expect(await repair.swap(ref(), 'one', rebuilt)).to.equal('swapped');
    expect(await sale.snapshot([held.batchId])).to.deep.equal(before);
    expect(await stock.resolve(open)).to.equal('outlived');
    const next = batchOf({ ...sale.sale, epoch: 2 }, purchasesOf('u2'));
    expect(await stock.deduct(next)).to.deep.equal({ outcome: 'deducted' });
  });

  it('loses whole scripts, never parts of one, if its log is truncated [R2]', async () => {
    const kept = await deducted('u1');
    const { batchId } = await deducted('u2');
    await restart(10);
    const { unitsLeft, requests, pending, markers } = await sale.snapshot([kept.batchId, batchId]);
    expect(requests).to.deep.equal({ 'u1/k1': `held:${kept.batchId}:1` });
    expect({ unitsLeft, pending }).to.deep.equal({ unitsLeft: 4, pending: [kept.batchId] });
    expect(markers).to.deep.equal({ [kept.batchId]: `deducted${kept.body}` });
  });

  it('refuses further steps of an unfinished repair and voids its lease [R6]', async () => {
    const held = await deducted('u1');
    expect(await repair.lock(ref(), 'one', 60_000)).to.equal('locked');
    await restart();
    expect(
      await repair.stage(ref(), 'one', [['u1/k1', { state: 'held', batchId: held.batchId, quantity: 1 }]]),
    ).to.equal('superseded');
    expect(await repair.lock(ref(), 'two', 60_000)).to.equal('locked');
    const claimed = await createBatchStore(runner.connection).reacquire(held, 1, new Set());
    expect(claimed).to.deep.equal({ outcome: 'unavailable' });
  });

  it('is not trusted if the master was a replica for a while, even as the same process [R7]', async () => {
    const { redis } = runner.connection;
    const other = await startPrivateRedis(redisServerBinary() as string);
    const admin = new Redis(other.port, '127.0.0.1', { lazyConnect: true });
    const follow = async (follower: Redis, port: number): Promise<void> => {
      await follower.replicaof('127.0.0.1', port);
      await found('the link is up', async () => (await follower.info('replication')).includes('link_status:up'));
    };
    try {
      await admin.connect();
      await deducted('u1');
      const before = await redis.info('server');
      await follow(admin, Number(new URL(server?.url as string).port));
      await admin.replicaof('NO', 'ONE');
      await follow(redis as Redis, other.port); // drops the writes that the other server lacks
      await redis.replicaof('NO', 'ONE');
      expect(/run_id:\w+/.exec(await redis.info('server'))?.[0]).to.equal(/run_id:\w+/.exec(before)?.[0]);
      expect(await repair.statusOf([ref()])).to.deep.equal([{ state: 'open', epoch: 1, sameServer: false }]);
      expect(await stock.deduct(batchOf(sale.sale, purchasesOf('u2')))).to.deep.equal({ outcome: 'stale_epoch' });
    } finally {
      admin.disconnect();
      await other.stop();
    }
  });

  it('reports nothing as loaded if it returns empty, and records only which sale is needed [R5]', async () => {
    const held = await deducted('u1');
    await sale.redis.flushdb(); // the state of a Redis that restarts without its log
    await restart();
    expect((await stock.precheck(ref(), held.purchases)).answers).to.deep.equal([{ outcome: 'loading' }]);
    expect(await stock.deduct(batchOf(sale.sale, purchasesOf('u2')))).to.deep.equal({ outcome: 'not_warmed' });
    expect(await stock.resolve(held)).to.equal('no_answer');
    expect(await stock.findRequest(ref(), 'u1', 'k1')).to.equal('unsure');
    expect(await stock.readSale(ref())).to.equal(null);
    expect(await sale.redis.keys('*')).to.deep.equal([REPAIR_ASKS_KEY]);
  });
});
