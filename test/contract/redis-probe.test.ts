import { expect } from 'chai';
import { mkdtempSync, rmdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fillVolume, freeVolume, mountRefusal, mountVolume, unmountBelow } from '../chaos/harness/disks.js';
import { until } from '../chaos/harness/wait.js';
import { silentLog } from '../helpers/silent-log.js';
import { connectRedis, type RedisConnection } from '../../src/redis/connection.js';
import { findRedisMisconfiguration, probeRedis, probeRedisWrites } from '../../src/redis/probe.js';
import {
  redisServerBinary,
  redisServerOrSkip,
  startPrivateRedis,
  type PrivateRedis,
} from '../helpers/private-redis.js';

describe('redis: checks whether a server may hold stock', () => {
  let server: PrivateRedis | undefined;
  let connection: RedisConnection;

  before(async function () {
    server = await startPrivateRedis(redisServerOrSkip(this));
    connection = await connectRedis({ url: server.url, replyTimeoutMs: 1000, connectTimeoutMs: 1000 }, silentLog);
    await connection.redis.config('SET', 'appendonly', 'yes');
  });
  after(async () => {
    await connection?.close();
    await server?.stop();
  });

  const withSetting = async (name: string, value: string, back: string): Promise<string[]> => {
    await connection.redis.config('SET', name, value);
    try {
      return await findRedisMisconfiguration(connection);
    } finally {
      await connection.redis.config('SET', name, back);
    }
  };

  it('finds no problem on a properly configured server', async () => {
    expect(await findRedisMisconfiguration(connection)).to.deep.equal([]);
  });

  it('refuses a server that evicts keys, with advice [R9]', async () => {
    const [problem, ...others] = await withSetting('maxmemory-policy', 'allkeys-lru', 'noeviction');
    expect(problem).to.include('allkeys-lru').and.include('noeviction');
    expect(others).to.deep.equal([]);
  });

  it('refuses a server without append-only log, with advice [R1]', async () => {
    const [problem, ...others] = await withSetting('appendonly', 'no', 'yes');
    expect(problem).to.include('appendonly').and.include('yes');
    expect(others).to.deep.equal([]);
  });

  it('returns the clock difference [T12]', async () => {
    const probe = await probeRedis(connection);
    expect(probe.ok).to.equal(true);
    expect(probe.detail).to.match(/^clock skew -?\d+ ms/);
  });

  it('fails in time when the server is gone [R8]', async () => {
    const other = await startPrivateRedis(redisServerBinary() as string);
    const gone = await connectRedis({ url: other.url, replyTimeoutMs: 300, connectTimeoutMs: 300 }, silentLog);
    try {
      await other.stop();
      const probe = await probeRedis(gone);
      expect(probe.ok).to.equal(false);
      expect(probe.detail).not.to.equal('');
    } finally {
      await gone.close();
    }
  });

  const detailWith = async (name: string, value: string, back: string): Promise<string | null> => {
    const { redis } = connection;
    await redis.config('SET', name, value);
    try {
      expect((await probeRedis(connection)).ok, 'a program may start').to.equal(true);
      const { ok, detail } = await probeRedisWrites(connection);
      return ok ? null : detail;
    } finally {
      await redis.config('SET', name, back);
    }
  };

  it('is not ready, and writes nothing, while the server is full or lacks replicas [R9]', async () => {
    const { redis } = connection;
    expect(await detailWith('maxmemory', '1', '0')).to.equal(
      'Redis is full (maxmemory) and refuses writes. Give it memory.',
    );
    expect(await detailWith('min-replicas-to-write', '1', '0')).to.match(/^Redis has fewer replicas than/);
    expect((await probeRedisWrites(connection)).ok, 'ready again').to.equal(true);
    expect(await redis.dbsize()).to.equal(0);
  });

  it('is not ready while the server is a replica [R9]', async () => {
    const { redis } = connection;
    await redis.replicaof('127.0.0.1', 1);
    try {
      expect((await probeRedisWrites(connection)).detail).to.match(/^Redis is a replica and refuses writes/);
    } finally {
      await redis.replicaof('NO', 'ONE');
    }
  });

  it('is not ready while the disk of the server is full, but lets a program start [L3]', async function () {
    const refusal = mountRefusal();
    if (refusal !== null) {
      console.log(`      skipped: ${refusal}`);
      return this.skip();
    }
    const dir = mkdtempSync(join(tmpdir(), 'seckill-probe-'));
    mountVolume(dir, 8 * 1024 ** 2);
    const args = ['--dir', dir, '--appendonly', 'yes'];
    const other = await startPrivateRedis(redisServerBinary() as string, { args });
    const full = await connectRedis({ url: other.url, replyTimeoutMs: 1000, connectTimeoutMs: 1000 }, silentLog);
    const write = (): Promise<unknown> => full.redis.set('a-key', 'x'.repeat(20_000)).catch(() => null);
    try {
      expect((await probeRedisWrites(full)).ok).to.equal(true);
      fillVolume(dir, 1);
      await until('it says so', async () => {
        await write();
        return /append-only file/.test((await probeRedisWrites(full)).detail);
      });
      expect(await write()).to.equal(null);
      expect((await probeRedisWrites(full)).ok).to.equal(false);
      const starting = await connectRedis({ url: other.url, replyTimeoutMs: 1000, connectTimeoutMs: 1000 }, silentLog);
      expect((await probeRedis(starting).finally(() => starting.close())).ok).to.equal(true);
      freeVolume(dir);
      await until('it is ready again', async () => (await probeRedisWrites(full)).ok);
      expect(await write()).to.equal('OK');
    } finally {
      await full.close();
      await other.stop();
      unmountBelow(dir);
      rmdirSync(dir);
    }
  });

  it('reports an unreachable server as a fault with its address and without its password', async () => {
    const url = 'redis://:hidden-word@127.0.0.1:1';
    const failed = await connectRedis({ url, replyTimeoutMs: 300, connectTimeoutMs: 300 }, silentLog).catch(
      (error: Error) => error,
    );
    expect(failed).to.include({ name: 'OperationalError', dependency: 'redis' });
    expect((failed as Error).message)
      .to.include('127.0.0.1:1')
      .and.not.include('hidden-word');
  });
});
