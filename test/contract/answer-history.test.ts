import { randomInt } from 'node:crypto';
import { expect } from 'chai';
import type { AnswerCounts, AnswerHistory } from '../../src/core/ports/answer-history.js';
import { createAnswerHistory } from '../../src/redis/answer-history.js';
import { connectRedis, type RedisConnection } from '../../src/redis/connection.js';
import { answersKey } from '../../src/redis/keys.js';
import { MemoryAnswerHistory } from '../helpers/memory/memory-answer-history.js';
import { onRedisCluster, WORLD_TIMEOUT_MS } from '../helpers/redis-cluster.js';
import { freshSaleId } from '../helpers/sales.js';
import { silentLog } from '../helpers/silent-log.js';
import { stackEnv } from '../helpers/stack-env.js';

interface World {
  readonly history: AnswerHistory;
  close(): Promise<void>;
}

const KEEP_MS = 60_000;
const connect = (url = stackEnv().REDIS_URL): Promise<RedisConnection> =>
  connectRedis({ url, replyTimeoutMs: 5000, connectTimeoutMs: 3000 }, silentLog);

async function redisWorld(url?: string): Promise<World> {
  const connection = await connect(url);
  return { history: createAnswerHistory(connection, KEEP_MS), close: () => connection.close() };
}

const WORLDS = [
  ['memory', async () => ({ history: new MemoryAnswerHistory({ nowMs: () => Date.now() }), close: async () => {} })],
  ['redis', () => redisWorld()],
  ['a Redis cluster', () => onRedisCluster(redisWorld)],
] as const;

/** A second that no other test uses: of long ago, at the beginning of a minute. */
const freshMs = (): number => randomInt(1, 20_000_000) * 60_000;

for (const [name, createWorld] of WORLDS) {
  describe(`contract AnswerHistory on ${name}`, () => {
    let world: World;
    before(async function () {
      this.timeout(WORLD_TIMEOUT_MS);
      world = await createWorld();
    });
    after(() => world?.close());

    /** As plain objects: second, from the start → sale → code → times. */
    const read = async (startMs: number, fromMs: number, toMs: number, saleId?: string): Promise<unknown> => {
      const seconds = await world.history.read(startMs + fromMs, startMs + toMs, saleId);
      return [...seconds].map(([atMs, sales]) => [atMs - startMs, Object.fromEntries(sales)]);
    };

    it('adds up what several apis answered in a second', async () => {
      const { history } = world;
      const [startMs, one, other] = [freshMs(), freshSaleId(), freshSaleId()];
      await history.add(startMs, new Map([[one, { accepted: 2, sold_out: 5 }]]));
      const more = new Map<string, AnswerCounts>([
        [one, { accepted: 1, limit_reached: 7 }],
        [other, { paused: 3 }],
      ]);
      await history.add(startMs, more);
      const sum = { [one]: { accepted: 3, sold_out: 5, limit_reached: 7 }, [other]: { paused: 3 } };
      expect(await read(startMs, 0, 1000)).to.deep.equal([[0, sum]]);
      expect(await read(startMs, 0, 1000, other)).to.deep.equal([[0, { [other]: { paused: 3 } }]]);
      expect(await read(startMs, 0, 1000, freshSaleId())).to.deep.equal([]);
    });

    it('reads a stretch of time, in order, from its first second to before its end', async () => {
      const { history } = world;
      const [startMs, saleId] = [freshMs(), freshSaleId()];
      const seconds = [59_000, 0, 4000, 5000, 12_000];
      for (const [index, ms] of seconds.entries()) {
        await history.add(startMs + ms, new Map([[saleId, { accepted: index + 1 }]]));
      }
      const at = (ms: number): unknown => [ms, { [saleId]: { accepted: seconds.indexOf(ms) + 1 } }];
      expect(await read(startMs, 0, 60_000)).to.deep.equal([0, 4000, 5000, 12_000, 59_000].map(at));
      expect(await read(startMs, 4000, 12_000)).to.deep.equal([4000, 5000].map(at));
      expect(await read(startMs, 13_000, 59_000)).to.deep.equal([]);
      expect(await read(startMs, -3_600_000 + 60_000, 1000)).to.deep.equal([at(0)]);
    });

    it('nothing was answered: nothing is written', async () => {
      const startMs = freshMs();
      await world.history.add(startMs, new Map());
      expect(await read(startMs, 0, 60_000)).to.deep.equal([]);
    });
  });
}

describe('AnswerHistory on redis', () => {
  it('is forgotten by itself, and is kept small', async () => {
    const connection = await connect();
    const { redis } = connection;
    const startMs = freshMs();
    const key = answersKey(startMs / 5000);
    try {
      const history = createAnswerHistory(connection, KEEP_MS);
      const codes = { accepted: 1000, sold_out: 100_000, limit_reached: 7, overloaded: 9 };
      const sales = Array.from({ length: 6 }, () => [freshSaleId(), codes] as const);
      for (let second = 0; second < 5; second++) await history.add(startMs + second * 1000, new Map(sales));
      expect(await redis.pttl(key)).to.be.within(1, KEEP_MS);
      expect(await redis.hlen(key)).to.equal(6 * 4 * 5);
      expect(Number(await redis.call('MEMORY', 'USAGE', key)), 'five seconds of six busy sales').to.be.below(8000);
    } finally {
      await redis.del(key);
      await connection.close();
    }
  });
});
