import { randomInt } from 'node:crypto';
import { expect } from 'chai';
import type { AnswerCounts, AnswerHistory } from '../../src/core/ports/answer-history.js';
import { createAnswerHistory } from '../../src/redis/answer-history.js';
import { connectRedis, type RedisConnection } from '../../src/redis/connection.js';
import { answersKey } from '../../src/redis/keys.js';
import { MemoryAnswerHistory } from '../helpers/memory/memory-answer-history.js';
import { onRedisCluster } from '../helpers/redis-cluster.js';
import { freshSaleId } from '../helpers/sales.js';
import { silentLog } from '../helpers/silent-log.js';
import { stackEnv } from '../helpers/stack-env.js';
import { onEachWorld } from './on-each-world.js';
import { systemClock } from '../../src/process/system-clock.js';

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
  ['memory', async () => ({ history: new MemoryAnswerHistory(systemClock), close: async () => {} })],
  ['redis', () => redisWorld()],
  ['a Redis cluster', () => onRedisCluster(redisWorld)],
] as const;

/** A second long ago, at the start of a minute, that no other test uses. */
const freshMs = (): number => randomInt(1, 20_000_000) * 60_000;

onEachWorld<World>('contract AnswerHistory', WORLDS, (world) => {
  const add = (atMs: number, sales: Readonly<Record<string, AnswerCounts>>, others = 0): Promise<void> =>
    world.history.add(atMs, { sales: new Map(Object.entries(sales)), others });
  /** Seconds from the start, with their answers. */
  const read = async (startMs: number, fromMs: number, toMs: number, saleId: string): Promise<unknown> => {
    const seconds = await world.history.read(saleId, startMs + fromMs, startMs + toMs);
    return [...seconds].map(([atMs, counts]) => [atMs - startMs, counts]);
  };
  const busy = async (fromMs: number, toMs: number): Promise<unknown> =>
    Object.fromEntries(await world.history.busy(fromMs, toMs));

  it('adds up the answers that several APIs gave in one second', async () => {
    const [startMs, one, other] = [freshMs(), freshSaleId(), freshSaleId()];
    await add(startMs, { [one]: { accepted: 2, sold_out: 5 } });
    await add(startMs, { [one]: { accepted: 1, limit_reached: 7 }, [other]: { paused: 3 } });
    expect(await read(startMs, 0, 1000, one)).to.deep.equal([[0, { accepted: 3, sold_out: 5, limit_reached: 7 }]]);
    expect(await read(startMs, 0, 1000, other)).to.deep.equal([[0, { paused: 3 }]]);
    expect(await read(startMs, 0, 1000, freshSaleId())).to.deep.equal([]);
    expect(await busy(startMs, startMs + 1000)).to.deep.equal({ [one]: 15, [other]: 3 });
  });

  it('reads a time range in order, including its first second and excluding its end', async () => {
    const [startMs, saleId] = [freshMs(), freshSaleId()];
    const seconds = [59_000, 0, 9000, 10_000, 12_000];
    for (const [index, ms] of seconds.entries()) await add(startMs + ms, { [saleId]: { accepted: index + 1 } });
    const at = (ms: number): unknown => [ms, { accepted: seconds.indexOf(ms) + 1 }];
    expect(await read(startMs, 0, 60_000, saleId)).to.deep.equal([0, 9000, 10_000, 12_000, 59_000].map(at));
    expect(await read(startMs, 9000, 12_000, saleId)).to.deep.equal([9000, 10_000].map(at));
    expect(await read(startMs, 13_000, 59_000, saleId)).to.deep.equal([]);
    expect(await read(startMs, -3_600_000 + 60_000, 1000, saleId)).to.deep.equal([at(0)]);
    expect(await busy(startMs + 9000, startMs + 12_000)).to.deep.equal({ [saleId]: 3 + 4 });
    expect(await busy(startMs + 13_000, startMs + 59_000)).to.deep.equal({});
  });

  it('returns unknown for a sale without answers if the second has uncounted sales', async () => {
    const [startMs, counted, other] = [freshMs(), freshSaleId(), freshSaleId()];
    await add(startMs, { [counted]: { accepted: 1 } });
    await add(startMs + 1000, { [counted]: { accepted: 2 } }, 5);
    await add(startMs + 2000, {}, 1);
    expect(await read(startMs, 0, 60_000, other)).to.deep.equal([
      [1000, null],
      [2000, null],
    ]);
    expect(await read(startMs, 0, 60_000, counted)).to.deep.equal([
      [0, { accepted: 1 }],
      [1000, { accepted: 2 }],
      [2000, null],
    ]);
    expect(await busy(startMs, startMs + 60_000)).to.deep.equal({ [counted]: 3 });
  });

  it('writes nothing when there are no answers', async () => {
    const [startMs, saleId] = [freshMs(), freshSaleId()];
    await add(startMs, {});
    expect(await read(startMs, 0, 60_000, saleId)).to.deep.equal([]);
  });
});

describe('AnswerHistory on redis', () => {
  it('expires and stays small', async () => {
    const connection = await connect();
    const { redis } = connection;
    const startMs = freshMs();
    const ids = Array.from({ length: 6 }, freshSaleId);
    const keys = [...ids, 'all', 'others'].map((of) => answersKey(startMs / 10_000, of));
    try {
      const history = createAnswerHistory(connection, KEEP_MS);
      const codes = { accepted: 1000, sold_out: 100_000, limit_reached: 7, overloaded: 9 };
      const sales = new Map(ids.map((saleId) => [saleId, codes]));
      for (let second = 0; second < 10; second++) await history.add(startMs + second * 1000, { sales, others: 3 });
      expect(await redis.hlen(keys[0] as string)).to.equal(10 * 4);
      let bytes = 0;
      for (const key of keys) {
        expect(await redis.pttl(key), key).to.be.within(1, KEEP_MS);
        bytes += Number(await redis.call('MEMORY', 'USAGE', key));
      }
      expect(bytes, 'ten seconds of six busy sales').to.be.below(16_000);
    } finally {
      await redis.del(...keys);
      await connection.close();
    }
  });

  it('reads only the answers of one sale, and reads an hour in bounded parts', async () => {
    const connection = await connect();
    const pipelines: string[][] = [];
    const redis = {
      pipeline: (commands: (string | number)[][]) => {
        pipelines.push(commands.map(([, key]) => String(key).replace(/\d+/, '<n>')));
        return connection.redis.pipeline(commands);
      },
    };
    try {
      const history = createAnswerHistory({ ...connection, redis } as unknown as RedisConnection, KEEP_MS);
      const [startMs, saleId] = [freshMs(), freshSaleId()];
      await history.read(saleId, startMs, startMs + 3_600_000);
      expect(new Set(pipelines.flat())).to.deep.equal(
        new Set([`sk:{live}:answers:<n>:${saleId}`, 'sk:{live}:answers:<n>:others']),
      );
      expect(pipelines.map(({ length }) => length)).to.deep.equal([120, 120, 120, 120, 120, 120]);
    } finally {
      await connection.close();
    }
  });
});
