import { Cluster, type Redis } from 'ioredis';
import { startProblems } from '../core/doctor/check.js';
import { CLOCK_SKEW_MAX_MS } from '../core/doctor/reach.js';
import { REDIS_START_CHECKS } from '../core/doctor/redis-checks.js';
import { reasonOf, type RedisConnection } from './connection.js';
import { readRedisStartFacts, skewOf } from './read-facts.js';
import { SCRIPT_NAMES } from './scripts.js';

export interface RedisProbe {
  readonly ok: boolean;
  readonly detail: string;
}

/**
 * Checks that every server answers in time and that its clock is close to ours, so that a program may start. Never
 * throws.
 */
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
    if (Math.abs(skewMs) <= CLOCK_SKEW_MAX_MS) return { ok: true, detail };
    return { ok: false, detail: `${detail}: more than ${CLOCK_SKEW_MAX_MS} ms, set the clock of this machine (NTP)` };
  } catch (error) {
    return { ok: false, detail: reasonOf(error) };
  }
}

/**
 * Checks the same, and that no server reports that its disk refuses the append-only file, so that a program is ready.
 * Such a server still answers reads, and heals when there is space again. In a cluster a single good server is enough:
 * the others stop their own sales, and a load balancer must not stop all of them. Never throws.
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
  return { ok: true, detail: bad.length === 0 ? good.detail : `${detail}; sales on other servers continue` };
}

async function probeWrites(connection: RedisConnection, servers: readonly Redis[]): Promise<RedisProbe> {
  const probed = await probe(connection, servers);
  if (!probed.ok) return probed;
  try {
    if ((await Promise.all(servers.map(writesItsLog))).every(Boolean)) return probed;
    return { ok: false, detail: 'Redis cannot write its append-only file and refuses writes. Check its disk.' };
  } catch (error) {
    return { ok: false, detail: reasonOf(error) };
  }
}

/** Upper bound for a server that hangs. A readiness check waits for a second at most. */
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

/**
 * Returns, as sentences, what is wrong with a server before stock is put into it. An empty list means that all is well.
 * @throws OperationalError redis
 */
export async function findRedisMisconfiguration(connection: RedisConnection): Promise<string[]> {
  const servers = await readRedisStartFacts(connection);
  return [...new Set(servers.flatMap((facts) => startProblems(REDIS_START_CHECKS, facts)))];
}
