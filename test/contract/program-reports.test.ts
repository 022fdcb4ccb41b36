import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import type { LiveProgram, ProgramReport, ProgramReports } from '../../src/core/ports/program-reports.js';
import { connectRedis, type RedisConnection } from '../../src/redis/connection.js';
import { createProgramReports } from '../../src/redis/program-reports.js';
import { ManualClock } from '../helpers/memory/manual-clock.js';
import { MemoryProgramReports } from '../helpers/memory/memory-program-reports.js';
import { onRedisCluster } from '../helpers/redis-cluster.js';
import { silentLog } from '../helpers/silent-log.js';
import { stackEnv } from '../helpers/stack-env.js';

interface World {
  readonly reports: ProgramReports;
  elapse(ms: number): Promise<void>;
  close(): Promise<void>;
}

const LONG_MS = 60_000;
const SHORT_MS = 300;

/** Differs from the key of the product, because operators in other tests would see the programs reported here. */
const freshKey = (): string => `sk:{live}:programs:${randomUUID()}`;
const connect = (url = stackEnv().REDIS_URL): Promise<RedisConnection> =>
  connectRedis({ url, replyTimeoutMs: 5000, connectTimeoutMs: 3000 }, silentLog);

async function memoryWorld(): Promise<World> {
  const clock = new ManualClock();
  return { reports: new MemoryProgramReports(clock), elapse: (ms) => clock.sleep(ms), close: async () => undefined };
}

async function redisWorld(url?: string): Promise<World> {
  const connection = await connect(url);
  return {
    reports: createProgramReports(connection, freshKey()),
    elapse: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
    close: () => connection.close(),
  };
}

const WORLDS = [
  ['memory', memoryWorld],
  ['redis', () => redisWorld()],
  ['a Redis cluster', () => onRedisCluster(redisWorld)],
] as const;

const reportOf = (parts: Partial<ProgramReport> = {}): ProgramReport => ({
  kind: 'api',
  id: `shop-${randomUUID()}:7`,
  version: '1.0.0',
  ready: true,
  problems: [],
  conditions: [],
  waiting: {},
  ...parts,
});

for (const [name, createWorld] of WORLDS) {
  describe(`contract ProgramReports on ${name}`, () => {
    let world: World;
    before(async () => {
      world = await createWorld();
    });
    after(() => world?.close());

    const among = async (...reports: readonly ProgramReport[]): Promise<LiveProgram[]> => {
      const live = await world.reports.live();
      return reports.flatMap(({ id }) => live.filter((report) => report.id === id));
    };
    const withoutAge = (programs: readonly LiveProgram[]): ProgramReport[] =>
      programs.map(({ seenMsAgo: _ago, ...report }) => report);

    it('reads the last report of every program by kind and id', async () => {
      const condition = {
        key: 'SeckillSaleNotReady 7',
        name: 'SeckillSaleNotReady',
        severity: 'info' as const,
        about: '7',
        text: 'Sale 7 starts soon.',
        sinceMs: Date.UTC(2030, 0, 1),
      };
      const keeper = reportOf({ kind: 'keeper', conditions: [condition] });
      const api = reportOf({ ready: false, problems: ['redis: does not answer.'], waiting: { 7: 3 } });
      const [first, second] = [randomUUID(), randomUUID()];
      await Promise.all([world.reports.report(first, keeper, LONG_MS), world.reports.report(second, api, LONG_MS)]);
      expect(withoutAge(await among(keeper, api))).to.deep.equal([keeper, api]);
      const kinds = (await world.reports.live()).map(({ kind }) => kind);
      expect(kinds).to.deep.equal([...kinds].sort());
      const later = { ...api, ready: true, problems: [] };
      await world.reports.report(second, later, LONG_MS);
      expect(withoutAge(await among(api))).to.deep.equal([later]);
    });

    it('returns the time since each program was seen', async () => {
      const report = reportOf();
      await world.reports.report(randomUUID(), report, LONG_MS);
      await world.elapse(SHORT_MS);
      const [{ seenMsAgo } = { seenMsAgo: -1 }] = await among(report);
      expect(seenMsAgo).to.be.within(SHORT_MS - 20, LONG_MS / 2);
    });

    it('drops a program without a timely report, and accepts it again later', async () => {
      const [one, other] = [reportOf(), reportOf()];
      const processId = randomUUID();
      await world.reports.report(processId, one, SHORT_MS);
      await world.reports.report(randomUUID(), other, LONG_MS);
      await world.elapse(SHORT_MS + 20);
      expect(withoutAge(await among(one, other))).to.deep.equal([other]);
      await world.reports.report(processId, one, LONG_MS);
      expect(withoutAge(await among(one))).to.deep.equal([one]);
    });

    it('drops a withdrawn report at once, and allows another withdrawal', async () => {
      const [processId, one] = [randomUUID(), reportOf()];
      await world.reports.report(processId, one, LONG_MS);
      await world.reports.withdraw(processId);
      await world.reports.withdraw(processId);
      expect(await among(one)).to.deep.equal([]);
    });
  });
}

describe('ProgramReports on redis', () => {
  it('omits an unreadable report of another release, and expires the keys', async () => {
    const connection = await connect();
    const { redis } = connection;
    const key = freshKey();
    const reports = createProgramReports(connection, key);
    try {
      const strange = ['', 'null', '{"kind":"api"}', 'nonsense', '{"kind":"baker","id":"x"}'];
      await redis.sadd(
        key,
        strange.map((_, index) => `p${index}`),
      );
      for (const [index, text] of strange.entries()) await redis.set(`${key}:p${index}`, text, 'PX', LONG_MS);
      expect(await reports.live()).to.deep.equal([]);
      await reports.report('good', reportOf(), LONG_MS);
      expect(await reports.live()).to.have.length(1);
      expect(await redis.pttl(key)).to.be.within(1, 3_600_000);
      expect(await redis.pttl(`${key}:good`)).to.be.within(1, LONG_MS);
    } finally {
      await redis.del(key, `${key}:good`);
      await connection.close();
    }
  });
});
