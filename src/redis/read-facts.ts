import type { Redis } from 'ioredis';
import type { RedisServerFacts, RedisStartFacts } from '../core/doctor/redis-checks.js';
import { asOperationalError, timeToMs, type RedisConnection } from './connection.js';

// What the servers say of themselves, for who judges them: a program that starts, and `seckill doctor`. Only reads.

/** Where a server is, beside what it says. */
export interface RedisServerSays extends Omit<RedisServerFacts, 'reach' | 'disk'> {
  /** As it was resolved. */
  readonly address: string;
  readonly port: number;
  /** Its folder, on its own machine; null: it does not say. */
  readonly dataDir: string | null;
}

/** Of every server that may hold keys. @throws OperationalError redis */
export const readRedisStartFacts = ({ masters }: RedisConnection): Promise<RedisStartFacts[]> =>
  asOperationalError('read the server settings', () =>
    Promise.all(masters().map(async (server) => startFactsIn(await server.info(), await skewOf(server)))),
  );

/** The same, and all that may be wrong with them besides. @throws OperationalError redis */
export const readRedisFacts = ({ masters }: RedisConnection): Promise<RedisServerSays[]> =>
  asOperationalError('read what the servers say', () => Promise.all(masters().map(factsOf)));

const startFactsIn = (info: string, skewMs: number): RedisStartFacts => ({
  evictionPolicy: fieldIn(info, 'maxmemory_policy'),
  appendOnly: fieldIn(info, 'aof_enabled') === '1',
  skewMs,
});

const fieldIn = (info: string, name: string): string => new RegExp(`^${name}:(.*)$`, 'm').exec(info)?.[1]?.trim() ?? '';

const clockOf = async (server: Redis): Promise<number> => timeToMs(await server.time());

/** Of every master, Unix ms; a read rejects with what the driver throws. */
export const readRedisClocks = ({ masters }: RedisConnection): Promise<number>[] => masters().map(clockOf);

/** Our clock less that of the server, ms. @throws what the driver throws */
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
  const valkeyVersion = fieldIn(info, 'valkey_version'); // its `redis_version` is that of the Redis which it can replace
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
    maxBytes: number('maxmemory') || number('total_system_memory'),
    cluster,
  };
}

async function clusterOf(server: Redis): Promise<RedisServerFacts['cluster']> {
  const isUp = (await server.cluster('INFO')).includes('cluster_state:ok');
  const coverage = await settingOf(server, 'cluster-require-full-coverage');
  return { isUp, needsAllSlots: coverage === null ? null : coverage === 'yes' };
}

/** Null where our user may not ask, as with most servers that somebody else runs. @throws what the driver throws else */
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

/** What Redis says to who has no login, a wrong one, none of the rights, or comes over the network without need. */
const REFUSALS = /^(NOAUTH|WRONGPASS|NOPERM|DENIED)\b/;

/** Comes once more, without our login. Never rejects; null: something else went wrong. */
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
