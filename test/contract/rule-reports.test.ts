import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import type { RuleReport, RuleReports } from '../../src/core/ports/rules.js';
import { connectRedis, type RedisConnection } from '../../src/redis/connection.js';
import { createRuleReports } from '../../src/redis/rule-reports.js';
import { ManualClock } from '../helpers/memory/manual-clock.js';
import { MemoryRuleReports } from '../helpers/memory/memory-rule-repository.js';
import { onRedisCluster } from '../helpers/redis-cluster.js';
import { silentLog } from '../helpers/silent-log.js';
import { stackEnv } from '../helpers/stack-env.js';

interface World {
  readonly reports: RuleReports;
  elapse(ms: number): Promise<void>;
  close(): Promise<void>;
}

const LONG_MS = 60_000;
const SHORT_MS = 300;

/** Differs from the key of the product, because operators in other tests would see the APIs reported here. */
const freshKey = (): string => `sk:{entry}:rules:apis:${randomUUID()}`;
const connect = (url = stackEnv().REDIS_URL): Promise<RedisConnection> =>
  connectRedis({ url, replyTimeoutMs: 5000, connectTimeoutMs: 3000 }, silentLog);

async function memoryWorld(): Promise<World> {
  const clock = new ManualClock();
  return { reports: new MemoryRuleReports(clock), elapse: (ms) => clock.sleep(ms), close: async () => undefined };
}

async function redisWorld(url?: string): Promise<World> {
  const connection = await connect(url);
  return {
    reports: createRuleReports(connection, freshKey()),
    elapse: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
    close: () => connection.close(),
  };
}

const WORLDS = [
  ['memory', memoryWorld],
  ['redis', () => redisWorld()],
  ['a Redis cluster', () => onRedisCluster(redisWorld)],
] as const;

const reportOf = (version: number | null, refused: RuleReport['refused'] = null): RuleReport => ({
  processId: `test-${randomUUID()}`,
  host: 'shop-1',
  pid: 7,
  version,
  refused,
});

for (const [name, createWorld] of WORLDS) {
  describe(`contract RuleReports on ${name}`, () => {
    let world: World;
    before(async () => {
      world = await createWorld();
    });
    after(() => world?.close());

    const among = async (...reports: readonly RuleReport[]): Promise<RuleReport[]> => {
      const live = await world.reports.live();
      return reports.flatMap(({ processId }) => live.filter((report) => report.processId === processId));
    };

    it('reads the last report of every API', async () => {
      const refused = { version: 4, reasons: ['sign.keys.0 has no secret here', 'limit is not a known field'] };
      const [one, other] = [reportOf(3), reportOf(null, refused)];
      await Promise.all([world.reports.report(one, LONG_MS), world.reports.report(other, LONG_MS)]);
      expect(await among(one, other)).to.deep.equal([one, other]);
      const later = { ...one, version: 4 };
      await world.reports.report(later, LONG_MS);
      expect(await among(one)).to.deep.equal([later]);
    });

    it('drops an API without a timely report, and accepts it again later', async () => {
      const [one, other] = [reportOf(1), reportOf(1)];
      await Promise.all([world.reports.report(one, SHORT_MS), world.reports.report(other, LONG_MS)]);
      await world.elapse(SHORT_MS + 20);
      expect(await among(one, other)).to.deep.equal([other]);
      await world.reports.report(one, LONG_MS);
      expect(await among(one)).to.deep.equal([one]);
    });

    it('drops a withdrawn report at once, and allows another withdrawal', async () => {
      const one = reportOf(1);
      await world.reports.report(one, LONG_MS);
      await world.reports.withdraw(one.processId);
      await world.reports.withdraw(one.processId);
      expect(await among(one)).to.deep.equal([]);
    });
  });
}

describe('RuleReports on redis', () => {
  it('shows an API with an unreadable report of another release as following nothing, and expires its keys', async () => {
    const connection = await connect();
    const { redis } = connection;
    const key = freshKey();
    const reports = createRuleReports(connection, key);
    try {
      const strange = ['', 'null', '{"version":"new"}', 'nonsense'];
      await redis.sadd(
        key,
        strange.map((_, index) => `p${index}`),
      );
      for (const [index, text] of strange.entries()) await redis.set(`${key}:p${index}`, text, 'PX', LONG_MS);
      const live = await reports.live();
      expect(live.map(({ processId }) => processId)).to.have.members(['p0', 'p1', 'p2', 'p3']);
      for (const report of live) expect(report).to.include({ version: null, refused: null });
      await reports.report(reportOf(1), LONG_MS);
      expect(await redis.pttl(key)).to.be.within(1, 3_600_000);
    } finally {
      await redis.del(key);
      await connection.close();
    }
  });
});
