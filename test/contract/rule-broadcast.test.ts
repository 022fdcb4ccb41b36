import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { silentLog } from '../helpers/silent-log.js';
import type { RuleBroadcast } from '../../src/core/ports/rules.js';
import { connectRedis, type RedisConnection } from '../../src/redis/connection.js';
import { canaryKey } from '../../src/redis/keys.js';
import { createRuleBroadcast } from '../../src/redis/rule-broadcast.js';
import { MemoryRuleBroadcast } from '../helpers/memory/memory-rule-repository.js';
import { onRedisCluster } from '../helpers/redis-cluster.js';
import { stackEnv } from '../helpers/stack-env.js';
import { onEachWorld } from './on-each-world.js';

interface World {
  /** A broadcast that has no rules yet. */
  fresh(): RuleBroadcast;
  close(): Promise<void>;
}

/** Not the key of the product, because APIs of other tests would use the rules announced here. */
const freshKey = (): string => `sk:{entry}:rules:${randomBytes(6).toString('hex')}`;

async function redisWorld(url = stackEnv().REDIS_URL): Promise<World> {
  const connection = await connectRedis({ url, replyTimeoutMs: 5000, connectTimeoutMs: 3000 }, silentLog);
  return { fresh: () => createRuleBroadcast(connection, freshKey()), close: () => connection.close() };
}

const WORLDS = [
  ['memory', async (): Promise<World> => ({ fresh: () => new MemoryRuleBroadcast(), close: async () => undefined })],
  ['redis', () => redisWorld()],
  ['a Redis cluster', () => onRedisCluster(redisWorld)],
] as const;

const announced = (version: number) => ({ version, rules: { lists: { mode: `m${version}` } }, canary: null });

onEachWorld<World>('contract RuleBroadcast', WORLDS, (world) => {
  let broadcast: RuleBroadcast;
  beforeEach(() => (broadcast = world.fresh()));

  it('counts as older than every version, even 0, while no rules are announced', async () => {
    expect(await broadcast.newerThan(0)).to.deep.equal({ is: 'behind' });
    expect(await broadcast.newerThan(3)).to.deep.equal({ is: 'behind' });
  });

  it('gives announced rules unchanged to readers of an older version', async () => {
    const lists = { agents: { deny: ['Schlüssel "1" {x}', '🎉'] } };
    const stored = { version: 2, rules: { lists }, canary: { percent: 1, rules: { lists } } };
    await broadcast.announce(stored);
    expect(await broadcast.newerThan(0)).to.deep.equal({ is: 'newer', stored });
    expect(await broadcast.newerThan(1)).to.deep.equal({ is: 'newer', stored });
    expect(await broadcast.newerThan(2)).to.deep.equal({ is: 'level' });
    expect(await broadcast.newerThan(3)).to.deep.equal({ is: 'behind' });
  });

  it('announces the absence of rules as version 0', async () => {
    await broadcast.announce({ version: 0, rules: {}, canary: null });
    expect(await broadcast.newerThan(0)).to.deep.equal({ is: 'level' });
    expect(await broadcast.newerThan(1)).to.deep.equal({ is: 'behind' });
  });

  it('keeps the newest version, whatever the order and number of announcements', async () => {
    const versions = [3, 1, 4, 4, 2, 10, 9];
    await Promise.all(versions.map((version) => broadcast.announce(announced(version))));
    const newest = { is: 'newer', stored: announced(10) };
    expect(await broadcast.newerThan(0)).to.deep.equal(newest);
    expect(await broadcast.newerThan(9)).to.deep.equal(newest);
  });
});

describe('rule broadcast on redis', () => {
  let connection: RedisConnection;
  before(async () => {
    const options = { url: stackEnv().REDIS_URL, replyTimeoutMs: 5000, connectTimeoutMs: 3000 };
    connection = await connectRedis(options, silentLog);
  });
  after(() => connection?.close());

  it('stores only one version, so that it does not grow', async () => {
    const key = freshKey();
    const broadcast = createRuleBroadcast(connection, key);
    for (let version = 0; version < 5; version++) await broadcast.announce(announced(version));
    expect([await connection.redis.zcard(key), await connection.redis.zcard(canaryKey(key))]).to.deep.equal([1, 1]);
  });

  it('passes an invalid value to the reader, which refuses it', async () => {
    const key = freshKey();
    await connection.redis.zadd(key, 7, 'no json');
    await connection.redis.zadd(canaryKey(key), 7, 'null');
    const update = await createRuleBroadcast(connection, key).newerThan(0);
    expect(update).to.deep.equal({ is: 'newer', stored: { version: 7, rules: 'no json', canary: null } });
  });

  it('sends readers to MySQL when the previous release announced newer rules', async () => {
    const key = freshKey();
    const broadcast = createRuleBroadcast(connection, key);
    await broadcast.announce(announced(6));
    await connection.redis.zadd(key, 7, '{}');
    await connection.redis.zremrangebyrank(key, 0, -2);
    expect([await broadcast.newerThan(6), await broadcast.newerThan(7)]).to.deep.equal([
      { is: 'behind' },
      { is: 'level' },
    ]);
    await broadcast.announce({ version: 7, rules: {}, canary: { percent: 1 } });
    expect(await broadcast.newerThan(6)).to.have.nested.property('stored.canary.percent', 1);
  });

  it('reports a fault of redis when Redis is gone', async () => {
    const options = { url: stackEnv().REDIS_URL, replyTimeoutMs: 5000, connectTimeoutMs: 3000 };
    const gone = await connectRedis(options, silentLog);
    await gone.close();
    for (const call of [
      () => createRuleBroadcast(gone).newerThan(0),
      () => createRuleBroadcast(gone).announce(announced(1)),
    ]) {
      const error = await call().catch((cause: unknown) => cause);
      expect(error).to.include({ name: 'OperationalError', dependency: 'redis', retryable: true });
    }
  });
});
