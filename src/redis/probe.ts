import { Cluster, type Redis } from 'ioredis';
import { asOperationalError, reasonOf, timeToMs, type RedisConnection } from './connection.js';
import { SCRIPT_NAMES } from './scripts.js';

export interface RedisProbe {
  readonly ok: boolean;
  readonly detail: string;
}

/** Our clock and Redis may differ by this much: Redis time opens the sale, ours only measures. */
const SKEW_MAX_MS = 2000;

/** Every server answers, in time, and not far from our clock: a program may start. Never throws. */
export async function probeRedis({ redis, masters, scriptsLoaded }: RedisConnection): Promise<RedisProbe> {
  try {
    const servers = masters();
    if (servers.length === 0) return { ok: false, detail: 'there is no connection to Redis' };
    if (redis instanceof Cluster && !(await Promise.all(servers.map(isClusterUp))).every(Boolean)) {
      return { ok: false, detail: 'the Redis cluster is down: see CLUSTER INFO' };
    }
    const skews = await Promise.all(servers.map(skewOf));
    const skewMs = skews.reduce((most, one) => (Math.abs(one) > Math.abs(most) ? one : most));
    const detail = `clock skew ${skewMs} ms, ${await scriptsLoaded()} of ${SCRIPT_NAMES.length} scripts loaded`;
    if (Math.abs(skewMs) <= SKEW_MAX_MS) return { ok: true, detail };
    return { ok: false, detail: `${detail}: more than ${SKEW_MAX_MS} ms, set the clock of this host (NTP)` };
  } catch (error) {
    return { ok: false, detail: reasonOf(error) };
  }
}

/**
 * The same, and none has said that its disk refuses the append-only file: a program is ready. Such a server still answers
 * what reads, and heals by itself when there is space again. Never throws.
 */
export async function probeRedisWrites(connection: RedisConnection): Promise<RedisProbe> {
  const probe = await probeRedis(connection);
  if (!probe.ok) return probe;
  try {
    if ((await Promise.all(connection.masters().map(writesItsLog))).every(Boolean)) return probe;
    return { ok: false, detail: 'Redis cannot write its append-only file and refuses writes: is its disk full?' };
  } catch (error) {
    return { ok: false, detail: reasonOf(error) };
  }
}

const writesItsLog = async (server: Redis): Promise<boolean> =>
  !(await server.info('persistence')).includes('aof_last_write_status:err');

const isClusterUp = async (server: Redis): Promise<boolean> =>
  (await server.cluster('INFO')).includes('cluster_state:ok');

async function skewOf(server: Redis): Promise<number> {
  const startedMs = Date.now();
  const redisMs = timeToMs(await server.time());
  return Math.round((startedMs + Date.now()) / 2 - redisMs);
}

/**
 * What must be true of every server before stock is put into it, as sentences; an empty list is good.
 * @throws OperationalError redis
 */
export async function findRedisMisconfiguration({ masters }: RedisConnection): Promise<string[]> {
  const infos = await asOperationalError('read the server settings', () =>
    Promise.all(masters().map((server) => server.info())),
  );
  return [...new Set(infos.flatMap(problemsIn))];
}

function problemsIn(info: string): string[] {
  const read = (name: string): string => new RegExp(`^${name}:(.*)$`, 'm').exec(info)?.[1]?.trim() ?? '';
  const problems: string[] = [];
  const policy = read('maxmemory_policy');
  if (policy !== 'noeviction') {
    problems.push(`maxmemory-policy is ${policy}: stock could be evicted. Set it to noeviction.`);
  }
  if (read('aof_enabled') !== '1') {
    problems.push('appendonly is no: a restart would lose who holds what. Set it to yes.');
  }
  return problems;
}
