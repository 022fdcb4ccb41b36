import type { Redis } from 'ioredis';
import type { RedisServerFacts, RedisStartFacts } from '../core/doctor/redis-checks.js';
import { asOperationalError, timeToMs, type RedisConnection } from './connection.js';

// Reads facts about the servers for a starting program and for `seckill doctor`. Writes nothing.

export interface RedisServerSays extends Omit<RedisServerFacts, 'reach' | 'disk'> {
  /** IP address behind its name. */
  readonly address: string;
  readonly port: number;
  /** Data folder on the server's machine. Null if the server does not report it. */
  readonly dataDir: string | null;
}

/** Reads every server that may hold keys. @throws OperationalError redis */
export const readRedisStartFacts = ({ masters }: RedisConnection): Promise<RedisStartFacts[]> =>
  asOperationalError('read the server settings', () =>
    Promise.all(masters().map(async (server) => startFactsIn(await server.info(), await skewOf(server)))),
  );

/** Reads the same facts, and others that may reveal a problem. @throws OperationalError redis */
export const readRedisFacts = ({ masters }: RedisConnection): Promise<RedisServerSays[]> =>
  asOperationalError('read what the servers say', () => Promise.all(masters().map(factsOf)));

const startFactsIn = (info: string, skewMs: number): RedisStartFacts => ({
  evictionPolicy: fieldIn(info, 'maxmemory_policy'),
  appendOnly: fieldIn(info, 'aof_enabled') === '1',
  skewMs,
});

const fieldIn = (info: string, name: string): string => new RegExp(`^${name}:(.*)$`, 'm').exec(info)?.[1]?.trim() ?? '';

const clockOf = async (server: Redis): Promise<number> => timeToMs(await server.time());

/** Reads the clock of every master, Unix ms. A read rejects with what the driver throws. */
export const readRedisClocks = ({ masters }: RedisConnection): Promise<number>[] => masters().map(clockOf);

/** Returns our clock minus that of the server, ms. @throws what the driver throws */
export async function skewOf(server: Redis): Promise<number> {
  const startedMs = Date.now();
  const redisMs = await clockOf(server);
  return Math.round((startedMs + Date.now()) / 2 - redisMs);
}

async function factsOf(server: Redis): Promise<RedisServerSays> {
  const info = await server.info();
  const number = (name: string): number => Number(fieldIn(info, name)) || 0;
  const { remoteAddress: address = '', remotePort: port = 0 } = server.stream;
  const [skewMs, user, strangers, fsync, replicasNeeded, dataDir, cluster] = await Promise.all([
    skewOf(server),
    ifAllowed(server.acl('WHOAMI')),
    askAsStranger(server),
    settingOf(server, 'appendfsync'),
    settingOf(server, 'min-replicas-to-write'),
    settingOf(server, 'dir'),
    fieldIn(info, 'cluster_enabled') === '1' ? clusterOf(server) : null,
  ]);
  const valkeyVersion = fieldIn(info, 'valkey_version'); // Valkey reports a `redis_version` as well
  return {
    ...startFactsIn(info, skewMs),
    server: `${address}:${port}`,
    address,
    port,
    dataDir,
    product: valkeyVersion === '' ? 'redis' : 'valkey',
    version: valkeyVersion || fieldIn(info, 'redis_version'),
    user,
    strangers,
    encrypted: Boolean(server.options.tls),
    isMaster: fieldIn(info, 'role') === 'master',
    replicas: number('connected_slaves'),
    replicasNeeded: replicasNeeded === null ? null : Number(replicasNeeded),
    fsync,
    lastAppendFailed: fieldIn(info, 'aof_last_write_status') === 'err',
    lastRewriteFailed: fieldIn(info, 'aof_last_bgrewrite_status') === 'err',
    usedBytes: number('used_memory'),
    hasLimit: fieldIn(info, 'maxmemory') !== '0',
    maxBytes: number('maxmemory') || number('total_system_memory'),
    cluster,
  };
}

async function clusterOf(server: Redis): Promise<RedisServerFacts['cluster']> {
  const isUp = (await server.cluster('INFO')).includes('cluster_state:ok');
  const coverage = await settingOf(server, 'cluster-require-full-coverage');
  return { isUp, needsAllSlots: coverage === null ? null : coverage === 'yes' };
}

/** Returns null if our user lacks the permission, as on most hosted servers. @throws what the driver throws */
async function ifAllowed<T>(asked: Promise<T>): Promise<T | null> {
  try {
    return await asked;
  } catch (error) {
    if ((error as Error).name === 'ReplyError') return null;
    throw error;
  }
}

async function settingOf(server: Redis, name: string): Promise<string | null> {
  const reply = (await ifAllowed(server.config('GET', name))) as readonly string[] | null;
  return reply?.[1] ?? null;
}

/** Replies to a client without login, with a wrong login or no permission, or in protected mode. */
const REFUSALS = /^(NOAUTH|WRONGPASS|NOPERM|DENIED)\b/;

/** Connects again, without our login. Null: something else went wrong. Never rejects. */
async function askAsStranger(server: Redis): Promise<RedisServerFacts['strangers']> {
  const said: string[] = [];
  const never = (): null => null;
  const stranger = server.duplicate({
    username: undefined,
    password: undefined,
    lazyConnect: true,
    enableReadyCheck: false,
    enableOfflineQueue: true,
    retryStrategy: never,
    sentinelRetryStrategy: never,
    failoverDetector: false,
    reconnectOnError: null,
  });
  stranger.on('error', (error: Error) => said.push(error.message));
  try {
    await stranger.connect();
    await stranger.ping();
    return 'served';
  } catch (error) {
    said.push((error as Error).message);
    return said.some((text) => REFUSALS.test(text)) ? 'refused' : null;
  } finally {
    stranger.disconnect();
  }
}
