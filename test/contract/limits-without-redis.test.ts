import { expect } from 'chai';
import { systemClock } from '../../src/process/system-clock.js';
import { limitsRules, Limits } from '../../src/admission/limits/limits.js';
import type { Refused } from '../../src/admission/layer.js';
import { noAdmissionMetrics } from '../helpers/no-metrics.js';
import { silentLog } from '../helpers/silent-log.js';
import { connectRedis, type RedisConnection } from '../../src/redis/connection.js';
import { createLimitStore } from '../../src/redis/limit-store.js';
import { redisServerOrSkip, startPrivateRedis, type PrivateRedis } from '../helpers/private-redis.js';
import { until } from '../chaos/harness/wait.js';

const REPLY_TIMEOUT_MS = 1_000;
const WINDOW_MS = 600_000;

describe('limits while Redis is down', () => {
  let server: PrivateRedis;
  let connection: RedisConnection;
  let counted: { redis: number; local: number };
  let limits: Limits;

  before(async function () {
    server = await startPrivateRedis(redisServerOrSkip(this));
    connection = await connectRedis({ url: server.url, replyTimeoutMs: 3_000, connectTimeoutMs: 3000 }, silentLog);
  });
  after(async () => {
    await connection?.close();
    await server?.stop();
  });
  beforeEach(() => {
    counted = { redis: 0, local: 0 };
    const rules = limitsRules.parse({
      mode: 'on',
      replyTimeoutMs: REPLY_TIMEOUT_MS,
      retryEveryMs: 50,
      purchase: { user: { limit: 3, windowMs: WINDOW_MS } },
    });
    limits = new Limits({
      rules: () => rules,
      store: createLimitStore(connection),
      clock: systemClock,
      metrics: { ...noAdmissionMetrics, requestsCounted: (by, callers) => void (counted[by] += callers) },
      log: silentLog,
    });
  });
  const caller = { endpoint: 'purchase', address: '', agent: '' } as const;
  const enter = async (userId: string): Promise<Refused | null> => limits.buyer(caller, userId);
  const words = async (userId: string, count: number): Promise<string[]> => {
    const answers = await Promise.all(Array.from({ length: count }, () => enter(userId)));
    return answers.map((refused) => refused?.word ?? 'in');
  };
  const countsInRedis = async (): Promise<boolean> => {
    const before = counted.redis;
    await enter('probe');
    return counted.redis > before;
  };

  it('keep the same limits without an error when Redis stops, and use Redis again when it is back', async () => {
    expect(await words('a', 4)).to.deep.equal(['in', 'in', 'in', 'rate_limited']);
    expect(counted).to.deep.equal({ redis: 4, local: 0 });
    server.signal('SIGSTOP');
    try {
      expect(await words('b', 5)).to.deep.equal(['in', 'in', 'in', 'rate_limited', 'rate_limited']);
      expect(counted.redis, 'the fault happened').to.equal(4);
      expect(counted.local).to.equal(5);
    } finally {
      server.signal('SIGCONT');
    }
    await until('Redis counts again', countsInRedis, { everyMs: 60 });
    expect(await words('a', 1), 'what Redis had counted still counts').to.deep.equal(['rate_limited']);
  });

  it('cause no wait and no error when the connection is lost', async () => {
    const lost = connection.redis;
    await enter('c');
    lost.disconnect(true);
    const answers = await words('d', 4);
    expect(answers).to.deep.equal(['in', 'in', 'in', 'rate_limited']);
    await until('Redis counts again', countsInRedis, { everyMs: 60 });
    expect(counted.local).to.be.at.least(4);
  });
});
