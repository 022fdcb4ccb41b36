import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import type { BreakerState, BreakerStore, LiveReport, BreakerReport } from '../../src/core/ports/admission-stores.js';
import { silentLog } from '../helpers/silent-log.js';
import { createBreakerStore } from '../../src/redis/breaker-store.js';
import { connectRedis, type RedisConnection } from '../../src/redis/connection.js';
import { BREAKER_UNTIL_KEY, BREAKER_VOTES_KEY } from '../../src/redis/keys.js';
import { ManualClock } from '../helpers/memory/manual-clock.js';
import { MemoryBreakerStore } from '../helpers/memory/memory-admission-stores.js';
import { stackEnv } from '../helpers/stack-env.js';
import { pause } from '../chaos/harness/wait.js';

interface StoreWorld {
  /** Two clients, as two processes. */
  readonly stores: readonly [BreakerStore, BreakerStore];
  elapse(ms: number): Promise<void>;
  close(): Promise<void>;
}

/** A lifetime for a busy machine. */
const LONG_MS = 60_000;
const SHORT_MS = 300;

const connect = (): Promise<RedisConnection> =>
  connectRedis({ url: stackEnv().REDIS_URL, replyTimeoutMs: 5000, connectTimeoutMs: 3000 }, silentLog);

async function memoryWorld(): Promise<StoreWorld> {
  const clock = new ManualClock();
  const store = new MemoryBreakerStore(clock);
  return { stores: [store, store], elapse: (ms) => clock.sleep(ms), close: async () => undefined };
}

async function redisWorld(): Promise<StoreWorld> {
  const [one, two] = await Promise.all([connect(), connect()]);
  return {
    stores: [createBreakerStore(one), createBreakerStore(two)],
    elapse: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
    close: async () => void (await Promise.all([one.close(), two.close()])),
  };
}

const newId = (): string => `test-${randomUUID()}`;
const reportOf = (redis: BreakerState, mysql: BreakerState = 'closed'): BreakerReport => ({
  redis,
  rocketmq: 'closed',
  mysql,
});

/** Other tests may report on the same server. */
const among = (reports: readonly LiveReport[], ids: readonly string[]): Record<string, BreakerReport> =>
  Object.fromEntries(
    reports.filter(({ processId }) => ids.includes(processId)).map(({ processId, report }) => [processId, report]),
  );

for (const [name, createWorld] of [
  ['memory', memoryWorld],
  ['redis', redisWorld],
] as const) {
  describe(`contract BreakerStore on ${name}`, () => {
    let world: StoreWorld;
    before(async () => {
      world = await createWorld();
    });
    after(() => world?.close());

    it('shows every process its own report and all other reports', async () => {
      const [first, second] = world.stores;
      const [a, b] = [newId(), newId()];
      expect(among(await first.exchange(a, reportOf('open'), LONG_MS), [a, b])).to.deep.equal({
        [a]: reportOf('open'),
      });
      const both = { [a]: reportOf('open'), [b]: reportOf('closed', 'half_open') };
      expect(among(await second.exchange(b, reportOf('closed', 'half_open'), LONG_MS), [a, b])).to.deep.equal(both);
      expect(among(await first.exchange(a, reportOf('open'), LONG_MS), [a, b])).to.deep.equal(both);
    });

    it('replaces an earlier report with a later report', async () => {
      const [first, second] = world.stores;
      const [a, b] = [newId(), newId()];
      for (const state of ['open', 'half_open', 'closed'] as const) {
        await first.exchange(a, reportOf(state), LONG_MS);
        expect(among(await second.exchange(b, reportOf('closed'), LONG_MS), [a])).to.deep.equal({
          [a]: reportOf(state),
        });
      }
    });

    it('drops a process without a timely report', async () => {
      const [first, second] = world.stores;
      const [a, b] = [newId(), newId()];
      await first.exchange(a, reportOf('open'), SHORT_MS);
      await second.exchange(b, reportOf('open'), LONG_MS);
      await world.elapse(SHORT_MS + 20);
      expect(among(await second.exchange(b, reportOf('open'), LONG_MS), [a, b])).to.deep.equal({
        [b]: reportOf('open'),
      });
      const again = among(await first.exchange(a, reportOf('closed'), SHORT_MS), [a]);
      expect(again, 'it may come back').to.deep.equal({ [a]: reportOf('closed') });
    });

    it('keeps a process that reports in time', async () => {
      const [first, second] = world.stores;
      const [a, b] = [newId(), newId()];
      await first.exchange(a, reportOf('open'), SHORT_MS);
      await first.exchange(a, reportOf('open'), LONG_MS);
      await world.elapse(SHORT_MS + 20);
      expect(among(await second.exchange(b, reportOf('closed'), LONG_MS), [a])).to.have.key(a);
    });

    it('drops a withdrawn report at once, and allows another withdrawal', async () => {
      const [first, second] = world.stores;
      const [a, b] = [newId(), newId()];
      await first.exchange(a, reportOf('open'), LONG_MS);
      await first.withdraw(a);
      await first.withdraw(a);
      expect(among(await second.exchange(b, reportOf('closed'), LONG_MS), [a])).to.deep.equal({});
    });
  });
}

describe('BreakerStore on redis', () => {
  let connection: RedisConnection;
  before(async () => {
    connection = await connect();
  });
  after(() => connection?.close());

  it('counts a process with an unreadable report of another release as live and healthy', async () => {
    const { redis } = connection;
    const texts = ['', 'nonsense', 'null', '7', '{"redis":"ajar","mysql":"open","kafka":"open"}'];
    const strange = texts.map((text) => [newId(), text] as const);
    for (const [id, text] of strange) {
      await redis.zadd(BREAKER_UNTIL_KEY, Date.now() + LONG_MS, id);
      await redis.hset(BREAKER_VOTES_KEY, id, text);
    }
    const reports = await createBreakerStore(connection).exchange(newId(), reportOf('closed'), LONG_MS);
    const ids = strange.map(([id]) => id);
    const last = ids.at(-1) as string;
    expect(among(reports, ids)).to.deep.equal({
      ...Object.fromEntries(ids.map((id) => [id, reportOf('closed')])),
      [last]: reportOf('closed', 'open'),
    });
    for (const id of ids) await createBreakerStore(connection).withdraw(id);
  });

  it('leaves nothing behind for a dead process, and expires the keys', async () => {
    const { redis } = connection;
    const [a, b] = [newId(), newId()];
    const store = createBreakerStore(connection);
    await store.exchange(a, reportOf('open'), 1);
    await pause(20); // Uses the clock of Redis, which a test cannot move.
    await store.exchange(b, reportOf('open'), LONG_MS);
    expect(await redis.hexists(BREAKER_VOTES_KEY, a)).to.equal(0);
    expect(await redis.zscore(BREAKER_UNTIL_KEY, a)).to.equal(null);
    for (const key of [BREAKER_VOTES_KEY, BREAKER_UNTIL_KEY]) expect(await redis.pttl(key)).to.be.within(1, 3_600_000);
    await store.withdraw(b);
  });
});
