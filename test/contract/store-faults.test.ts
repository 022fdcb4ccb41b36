import { expect } from 'chai';
import { OperationalError } from '../../src/core/errors.js';
import { silentLog } from '../helpers/silent-log.js';
import type { BatchStore } from '../../src/core/ports/batch-store.js';
import type { SaleStore, StockStore } from '../../src/core/ports/stock-store.js';
import { connectRedis } from '../../src/redis/connection.js';
import { createSaleStore } from '../../src/redis/sale-store.js';
import { createBatchStore } from '../../src/redis/batch-store.js';
import { createStockStore } from '../../src/redis/stock-store.js';
import { MemoryRedis } from '../helpers/memory/memory-redis.js';
import type { RedisFault } from '../helpers/memory/memory-redis-server.js';
import { batchOf, certainEntry, liveOrderOf, purchasesOf, saleOf, releaseOf } from '../helpers/sales.js';
import { stackEnv } from '../helpers/stack-env.js';
import { TcpProxy } from '../chaos/harness/tcp-proxy.js';
import { grantedMsOf, until } from '../chaos/harness/wait.js';
import { onEachWorld } from './on-each-world.js';

type Store = StockStore & SaleStore & BatchStore;

/** The stores, with functions to lose single replies and to disconnect. */
interface FaultyWorld {
  readonly store: Store;
  /** Runs one call whose request arrives and whose reply is lost. */
  losingReply<T>(fault: RedisFault, call: () => Promise<T>): Promise<T>;
  /** Runs one call that finds no server. */
  cutOff<T>(fault: RedisFault, call: () => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

/** Enough for a reply on a busy machine. */
const REPLY_TIMEOUT_MS = 1000;

async function memoryWorld(): Promise<FaultyWorld> {
  const store = new MemoryRedis();
  const broken = <T>(fault: RedisFault, call: () => Promise<T>): Promise<T> => {
    store.breakNext(fault);
    return call();
  };
  return { store, losingReply: broken, cutOff: broken, close: async () => undefined };
}

async function redisWorld(): Promise<FaultyWorld> {
  const url = new URL(stackEnv().REDIS_URL);
  const proxy = await TcpProxy.open(url.host);
  url.host = proxy.address;
  const options = { url: url.href, replyTimeoutMs: REPLY_TIMEOUT_MS, connectTimeoutMs: 3000 };
  const connection = await connectRedis(options, silentLog);
  const { redis } = connection;
  const store: Store = {
    ...createStockStore(connection, silentLog),
    ...createSaleStore(connection),
    ...createBatchStore(connection),
  };
  const isReady = (): boolean => redis.status === 'ready';
  /** After a lost reply, a connection would mistake the next reply for the lost reply. */
  const reconnect = async (): Promise<void> => {
    proxy.reset();
    await until('the connection broke', () => !isReady(), { everyMs: 1 });
    await until('the connection came back', isReady, { everyMs: 1 });
  };
  return {
    store,
    async losingReply(_, call) {
      const droppedBefore = proxy.droppedBytes;
      proxy.dropReplies = true;
      try {
        return await call();
      } finally {
        expect(isReady(), 'one late reply does not cost the connection').to.equal(true);
        expect(proxy.droppedBytes, 'the fault happened').to.be.greaterThan(droppedBefore);
        proxy.dropReplies = false;
        await reconnect();
      }
    },
    async cutOff(_, call) {
      proxy.reset();
      await until('the connection broke', () => !isReady(), { everyMs: 1 });
      try {
        return await call();
      } finally {
        await until('the connection came back', isReady, { everyMs: 1 });
      }
    },
    async close() {
      await connection.close();
      await proxy.close();
    },
  };
}

const WORLDS = [
  ['memory', memoryWorld],
  ['redis', redisWorld],
] as const;

onEachWorld<FaultyWorld>('contract: silent Redis', WORLDS, (world) => {
  let store: Store;
  before(async () => {
    ({ store } = world);
  });

  const openSale = async () => {
    const sale = saleOf({ stock: 5, opensAtMs: 1 }); // The memory store has its own clock.
    await store.warm(sale);
    await store.setState(sale, 'open');
    return { sale, at: { saleId: sale.saleId, bucket: 0 } };
  };
  const faultOf = async (call: Promise<unknown>): Promise<unknown> =>
    call.then(
      (value) => expect.fail(`answered ${JSON.stringify(value)}`),
      (error: unknown) => error,
    );
  const expectFault = (error: unknown): void => {
    expect(error).to.be.instanceOf(OperationalError);
    expect(error).to.include({ dependency: 'redis', retryable: true });
  };

  it('returns `outcome_unknown` if the reply of a deduct is lost, but resolve returns `deducted` [T8]', async () => {
    const { sale, at } = await openSale();
    const batch = batchOf(sale, purchasesOf('u1*2'));
    const verdict = await world.losingReply('deduct_reply_lost', () => store.deduct(batch));
    expect(verdict).to.deep.equal({ outcome: 'outcome_unknown' });
    expect(await store.resolve(batch)).to.equal('deducted');
    expect((await store.readSale(at))?.unitsLeft, 'the units of one deduct').to.equal(3);
  });

  it('returns `outcome_unknown` if the reply of a refusal is lost, but resolve returns `aborted` [G4]', async () => {
    const { sale, at } = await openSale();
    const batch = batchOf(sale, purchasesOf('u1*2', 'u2*2', 'u3*2'));
    const verdict = await world.losingReply('deduct_reply_lost', () => store.deduct(batch));
    expect(verdict).to.deep.equal({ outcome: 'outcome_unknown' });
    expect(await store.resolve(batch)).to.equal('aborted');
    expect((await store.readSale(at))?.unitsLeft).to.equal(5);
  });

  it('returns `outcome_unknown`, never a verdict, if the reply of resolve is lost [T10]', async () => {
    const { sale } = await openSale();
    const batch = batchOf(sale, purchasesOf('u1'));
    expect(await world.losingReply('resolve_reply_lost', () => store.resolve(batch))).to.equal('outcome_unknown');
    expect(await store.resolve(batch)).to.equal('aborted');
  });

  it('returns unknown at once from deduct and resolve while the server is down, and queues nothing [R8]', async () => {
    const { sale, at } = await openSale();
    const batch = batchOf(sale, purchasesOf('u1'));
    const tookMs = await grantedMsOf(async () => {
      const verdict = await world.cutOff('deduct_lost', () => store.deduct(batch));
      expect(verdict).to.deep.equal({ outcome: 'outcome_unknown' });
    });
    expect(tookMs).to.be.below(2000);
    expect(await world.cutOff('resolve_lost', () => store.resolve(batch))).to.equal('outcome_unknown');
    expect((await store.readSale(at))?.unitsLeft, 'no deduct was sent later').to.equal(5);
    expect(await store.resolve(batch)).to.equal('aborted');
  });

  it('throws retryable errors from precheck, reads, markRecorded and release [R8]', async () => {
    const { sale, at } = await openSale();
    const batch = batchOf(sale, purchasesOf('u1'));
    await store.deduct(batch);
    const release = releaseOf(at, 'u1', '1');
    expectFault(await faultOf(world.cutOff('precheck_fails', () => store.precheck(at, purchasesOf('u2')))));
    expectFault(await faultOf(world.cutOff('read_fails', () => store.readSale(at))));
    expectFault(await faultOf(world.cutOff('read_fails', () => store.findRequest(at, 'u1', 'k1'))));
    expectFault(await faultOf(world.cutOff('read_fails', () => store.stalePending(at, 0, 1))));
    expectFault(await faultOf(world.cutOff('mark_recorded_fails', () => store.markRecorded([{ batch, orders: [] }]))));
    expectFault(await faultOf(world.cutOff('release_fails', () => store.release([release]))));
    expect((await certainEntry(store.findRequest(at, 'u1', 'k1')))?.state, 'nothing of it happened').to.equal('held');
  });

  it('completes markRecorded or release once if a reply is lost and the call repeated', async () => {
    const { sale, at } = await openSale();
    const batch = batchOf(sale, purchasesOf('u1*2'));
    await store.deduct(batch);
    const orders = [liveOrderOf('u1', '101')];
    expectFault(
      await faultOf(world.losingReply('mark_recorded_reply_lost', () => store.markRecorded([{ batch, orders }]))),
    );
    expect((await certainEntry(store.findRequest(at, 'u1', 'k1')))?.state).to.equal('ordered');
    await store.markRecorded([{ batch, orders }]);

    const release = releaseOf(at, 'u1', '101');
    expectFault(await faultOf(world.losingReply('release_reply_lost', () => store.release([release]))));
    // If the lost reply belongs to the read before the script, the release runs only now.
    await store.release([release]);
    expect(await store.release([release])).to.deep.equal(['nothing']);
    expect((await store.readSale(at))?.unitsLeft).to.equal(5);
  });
});

describe('contract: half-open connection to Redis', () => {
  it('ends calls in time and replaces the connection [T9, R8]', async () => {
    const url = new URL(stackEnv().REDIS_URL);
    const proxy = await TcpProxy.open(url.host);
    url.host = proxy.address;
    const options = { url: url.href, replyTimeoutMs: REPLY_TIMEOUT_MS, connectTimeoutMs: 3000 };
    const connection = await connectRedis(options, silentLog);
    try {
      const [stock, sales] = [createStockStore(connection, silentLog), createSaleStore(connection)];
      const sale = saleOf();
      await sales.warm(sale);
      await sales.setState(sale, 'open');
      const { connections } = proxy;
      proxy.freeze();

      const batch = batchOf(sale, purchasesOf('u1'));
      expect(await stock.deduct(batch)).to.deep.equal({ outcome: 'outcome_unknown' });
      const decided = async (): Promise<boolean> => (await stock.resolve(batch)) !== 'outcome_unknown';
      const tookMs = await grantedMsOf(() => until('it is served again', decided, { everyMs: 10 }));
      expect(await stock.resolve(batch), 'the deduct was not sent again on the new connection').to.equal('aborted');
      expect(proxy.connections, 'over a new connection').to.be.greaterThan(connections);
      expect(tookMs).to.be.below(10 * REPLY_TIMEOUT_MS + 1000);
    } finally {
      await connection.close();
      await proxy.close();
    }
  });
});
