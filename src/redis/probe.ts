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
export const probeRedis = (connection: RedisConnection): Promise<RedisProbe> => probe(connection, connection.masters());

async function probe({ redis, scriptsLoaded }: RedisConnection, servers: readonly Redis[]): Promise<RedisProbe> {
  try {
    if (servers.length === 0) return { ok: false, detail: 'there is no connection to Redis' };
    if (redis instanceof Cluster && !(await Promise.all(servers.map(isClusterUp))).every(Boolean)) {
      return { ok: false, detail: 'the Redis cluster is down: see CLUSTER INFO' };
    }
    const skews = await Promise.all(servers.map(skewOf));
    const skewMs = skews.reduce((most, one) => (Math.abs(one) > Math.abs(most) ? one : most));
    const detail = `clock skew ${skewMs} ms, ${await scriptsLoaded(servers)} of ${SCRIPT_NAMES.length} scripts loaded`;
    if (Math.abs(skewMs) <= SKEW_MAX_MS) return { ok: true, detail };
    return { ok: false, detail: `${detail}: more than ${SKEW_MAX_MS} ms, set the clock of this host (NTP)` };
  } catch (error) {
    return { ok: false, detail: reasonOf(error) };
  }
}

/**
 * The same, and it has not said that its disk refuses the append-only file: a program is ready. Such a server still answers
 * what reads, and heals by itself when there is space again. In a cluster one such server is enough: the others stop their
 * own sales, and who sends buyers to ready programs must not stop all of them. Never throws.
 */
export async function probeRedisWrites(connection: RedisConnection): Promise<RedisProbe> {
  const servers = connection.masters();
  if (servers.length <= 1) return probeWrites(connection, servers);
  const probes = await Promise.all(
    servers.map(async (server) => {
      const { host = '', port = 0 } = server.options;
      return { where: `${host}:${port}`, ...(await inTime(probeWrites(connection, [server]))) };
    }),
  );
  const bad = probes.filter(({ ok }) => !ok);
  const good = probes.find(({ ok }) => ok);
  const detail = bad.map((one) => `${one.where}: ${one.detail}`).join('; ');
  if (good === undefined) return { ok: false, detail };
  return { ok: true, detail: bad.length === 0 ? good.detail : `${detail}; the sales on other servers go on` };
}

async function probeWrites(connection: RedisConnection, servers: readonly Redis[]): Promise<RedisProbe> {
  const probed = await probe(connection, servers);
  if (!probed.ok) return probed;
  try {
    if ((await Promise.all(servers.map(writesItsLog))).every(Boolean)) return probed;
    return { ok: false, detail: 'Redis cannot write its append-only file and refuses writes: is its disk full?' };
  } catch (error) {
    return { ok: false, detail: reasonOf(error) };
  }
}

/** Whoever asks whether we are ready waits for a second at most; a server that hangs is not to use that up. */
const PROBE_WAIT_MS = 500;

async function inTime(probed: Promise<RedisProbe>): Promise<RedisProbe> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<RedisProbe>((resolve) => {
    timer = setTimeout(() => resolve({ ok: false, detail: 'Redis did not answer in time' }), PROBE_WAIT_MS);
  });
  return Promise.race([probed, late]).finally(() => clearTimeout(timer));
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
