import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import type { HotSale, HotSaleStore } from '../../src/core/ports/hot-sales.js';
import { connectRedis, type RedisConnection } from '../../src/redis/connection.js';
import { createHotSaleStore } from '../../src/redis/hot-sale-store.js';
import { HOT_PROCESSES_KEY, hotReportKey } from '../../src/redis/keys.js';
import { ManualClock } from '../helpers/memory/manual-clock.js';
import { MemoryHotSaleStore } from '../helpers/memory/memory-hot-sale-store.js';
import { silentLog } from '../helpers/silent-log.js';
import { stackEnv } from '../helpers/stack-env.js';
import { pause } from '../chaos/harness/wait.js';

interface StoreWorld {
  readonly store: HotSaleStore;
  elapse(ms: number): Promise<void>;
  close(): Promise<void>;
}

/** A lifetime for a busy machine. */
const LONG_MS = 60_000;
const SHORT_MS = 200;

const connect = (): Promise<RedisConnection> =>
  connectRedis({ url: stackEnv().REDIS_URL, replyTimeoutMs: 5000, connectTimeoutMs: 3000 }, silentLog);

async function memoryWorld(): Promise<StoreWorld> {
  const clock = new ManualClock();
  return {
    store: new MemoryHotSaleStore(clock),
    elapse: (ms) => clock.sleep(ms),
    close: async () => undefined,
  };
}

async function redisWorld(): Promise<StoreWorld> {
  const connection = await connect();
  return {
    store: createHotSaleStore(connection),
    elapse: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
    close: () => connection.close(),
  };
}

const newId = (): string => `test-${randomUUID()}`;
/** A sale that no other test reports on the same server. */
const newSaleId = (): string => `9${String(Math.floor(Math.random() * 1e15)).padStart(15, '0')}`;
const ratesOf = async (store: HotSaleStore, saleId: string): Promise<number[]> => {
  const sales = (await store.reports()).flat().filter((sale) => sale.saleId === saleId);
  return sales.map(({ perSecond }) => perSecond).sort((a, b) => a - b);
};

for (const [name, createWorld] of [
  ['memory', memoryWorld],
  ['redis', redisWorld],
] as const) {
  describe(`contract HotSaleStore on ${name}`, () => {
    let world: StoreWorld;
    before(async () => {
      world = await createWorld();
    });
    after(() => world?.close());

    it('keeps the last report of every process, drops a withdrawn report, and allows another withdrawal', async () => {
      const { store } = world;
      const [a, b, saleId] = [newId(), newId(), newSaleId()];
      const of = (perSecond: number): HotSale[] => [{ saleId, perSecond }];
      await store.report(a, of(1), LONG_MS);
      await store.report(b, of(20.5), LONG_MS);
      await store.report(a, of(3), LONG_MS);
      expect(await ratesOf(store, saleId)).to.deep.equal([3, 20.5]);
      await store.withdraw(b);
      await store.withdraw(b);
      expect(await ratesOf(store, saleId)).to.deep.equal([3]);
      await store.report(a, [], LONG_MS);
      expect(await ratesOf(store, saleId)).to.deep.equal([]);
      await store.withdraw(a);
    });

    it('ignores a report that is not renewed in time, and accepts the process again later', async () => {
      const { store } = world;
      const [a, b, saleId] = [newId(), newId(), newSaleId()];
      await store.report(a, [{ saleId, perSecond: 1 }], SHORT_MS);
      await store.report(b, [{ saleId, perSecond: 2 }], LONG_MS);
      await world.elapse(SHORT_MS + 20);
      expect(await ratesOf(store, saleId)).to.deep.equal([2]);
      await store.report(a, [{ saleId, perSecond: 4 }], LONG_MS);
      expect(await ratesOf(store, saleId)).to.deep.equal([2, 4]);
      for (const id of [a, b]) await store.withdraw(id);
    });
  });
}

describe('HotSaleStore on redis', () => {
  let connection: RedisConnection;
  before(async () => {
    connection = await connect();
  });
  after(() => connection?.close());

  it('ignores an unreadable report of another release', async () => {
    const { redis } = connection;
    const saleId = newSaleId();
    const strange = ['', 'null', '7', '{"7":1}', `[["x",1],["${saleId}","1"],["${saleId}",-1],7,["${saleId}",5]]`];
    const ids = strange.map(newId);
    for (const [index, id] of ids.entries()) {
      await redis.sadd(HOT_PROCESSES_KEY, id);
      await redis.set(hotReportKey(id), strange[index] ?? '', 'PX', LONG_MS);
    }
    const store = createHotSaleStore(connection);
    expect(await ratesOf(store, saleId)).to.deep.equal([5]);
    for (const id of ids) await store.withdraw(id);
  });

  it('leaves nothing behind for a dead process, and expires the keys', async () => {
    const { redis } = connection;
    const [a, b] = [newId(), newId()];
    const store = createHotSaleStore(connection);
    await store.report(a, [], 1);
    await store.report(b, [], LONG_MS);
    await pause(20); // Uses the clock of Redis, which a test cannot move.
    await store.reports();
    expect(await redis.sismember(HOT_PROCESSES_KEY, a)).to.equal(0);
    expect(await redis.sismember(HOT_PROCESSES_KEY, b)).to.equal(1);
    expect(await redis.pttl(HOT_PROCESSES_KEY)).to.be.within(1, 3_600_000);
    expect(await redis.pttl(hotReportKey(b))).to.be.within(1, LONG_MS);
    await store.withdraw(b);
  });
});
