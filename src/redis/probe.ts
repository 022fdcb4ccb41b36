import { Cluster, type Redis } from 'ioredis';
import { startProblems } from '../core/doctor/check.js';
import { CLOCK_SKEW_MAX_MS } from '../core/clock-skew.js';
import { REDIS_START_CHECKS } from '../core/doctor/redis-checks.js';
import { nameOf, reasonOf, type RedisConnection } from './connection.js';
import { writeProbeKey } from './keys.js';
import { readRedisStartFacts, skewOf } from './read-facts.js';
import { SCRIPT_NAMES } from './scripts.js';

export interface RedisProbe {
  readonly ok: boolean;
  readonly detail: string;
}

/** Checks for the start that every server answers in time and has a clock close to ours. Never throws. */
export const probeRedis = (connection: RedisConnection): Promise<RedisProbe> => probe(connection, connection.masters());

async function probe({ redis, scriptsLoaded }: RedisConnection, servers: readonly Redis[]): Promise<RedisProbe> {
  try {
    if (servers.length === 0) return { ok: false, detail: 'there is no connection to Redis' };
    if (redis instanceof Cluster && !(await Promise.all(servers.map(isClusterUp))).every(Boolean)) {
      return { ok: false, detail: 'the Redis cluster is down: see CLUSTER INFO' };
    }
    const [loaded, ...skews] = await Promise.all([scriptsLoaded(servers), ...servers.map(skewOf)]);
    const skewMs = skews.reduce((most, one) => (Math.abs(one) > Math.abs(most) ? one : most));
    const detail = `clock skew ${skewMs} ms, ${loaded} of ${SCRIPT_NAMES.length} scripts loaded`;
    if (Math.abs(skewMs) <= CLOCK_SKEW_MAX_MS) return { ok: true, detail };
    return { ok: false, detail: `${detail}: more than ${CLOCK_SKEW_MAX_MS} ms, set the clock of this machine (NTP)` };
  } catch (error) {
    return { ok: false, detail: reasonOf(error) };
  }
}

/**
 * Checks for readiness that every server also takes writes. A server that is full, cannot write its log or lacks
 * replicas still answers reads, and recovers by itself. One good server of a cluster is enough: the others stop only
 * their own sales, and a load balancer must not stop all. Never throws.
 */
export async function probeRedisWrites(connection: RedisConnection): Promise<RedisProbe> {
  const servers = connection.masters();
  if (servers.length <= 1) return probeWrites(connection, servers);
  const probes = await Promise.all(
    servers.map(async (server) => ({ where: nameOf(server), ...(await inTime(probeWrites(connection, [server]))) })),
  );
  const bad = probes.filter(({ ok }) => !ok);
  const good = probes.find(({ ok }) => ok);
  const detail = bad.map((one) => `${one.where}: ${one.detail}`).join('; ');
  if (good === undefined) return { ok: false, detail };
  return { ok: true, detail: bad.length === 0 ? good.detail : `${detail}; sales on other servers continue` };
}

async function probeWrites(connection: RedisConnection, servers: readonly Redis[]): Promise<RedisProbe> {
  const [probed, ...refusals] = await Promise.all([probe(connection, servers), ...servers.map(writeRefusalOf)]);
  return probed.ok ? { ...probed, ...refusals.find((refusal) => refusal !== null) } : probed;
}

/** Maximum wait for a server that hangs. A readiness check may take at most a second. */
const PROBE_WAIT_MS = 500;

async function inTime(probed: Promise<RedisProbe>): Promise<RedisProbe> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<RedisProbe>((resolve) => {
    timer = setTimeout(() => resolve({ ok: false, detail: 'Redis did not answer in time' }), PROBE_WAIT_MS);
  });
  return Promise.race([probed, late]).finally(() => clearTimeout(timer));
}

/** Keys tried to find one that a cluster server owns. Without any, it has almost no slots. */
const PROBE_KEYS_MAX = 64;
const FOREIGN_KEY = /^(MOVED|ASK|TRYAGAIN|CLUSTERDOWN)\b/;
/** Replies of a server that takes no writes, each with a text for the operator. */
const WRITE_REFUSALS: readonly (readonly [RegExp, string])[] = [
  [/\bOOM\b|used memory/, 'Redis is full (maxmemory) and refuses writes. Give it memory.'],
  [/\bMISCONF\b.*\bAOF\b/, 'Redis cannot write its append-only file and refuses writes. Check its disk.'],
  [/\bREADONLY\b/, 'Redis is a replica and refuses writes. REDIS_URL must name the master, or its sentinels.'],
  [/\bNOREPLICAS\b/, 'Redis has fewer replicas than min-replicas-to-write and refuses writes. Connect more replicas.'],
];

/** Sends a write of zero bytes to a missing key: checked like any write, without effect. Never throws. */
async function writeRefusalOf(server: Redis): Promise<RedisProbe | null> {
  for (let number = 0; number < PROBE_KEYS_MAX; number++) {
    try {
      await server.setrange(writeProbeKey(number), 0, '');
      return null;
    } catch (error) {
      const reason = reasonOf(error);
      if (FOREIGN_KEY.test(reason)) continue;
      return { ok: false, detail: WRITE_REFUSALS.find(([pattern]) => pattern.test(reason))?.[1] ?? reason };
    }
  }
  return null;
}

const isClusterUp = async (server: Redis): Promise<boolean> =>
  (await server.cluster('INFO')).includes('cluster_state:ok');

/** Returns sentences about what must be fixed before a server gets stock. @throws OperationalError redis */
export async function findRedisMisconfiguration(connection: RedisConnection): Promise<string[]> {
  const servers = await readRedisStartFacts(connection);
  return [...new Set(servers.flatMap((facts) => startProblems(REDIS_START_CHECKS, facts)))];
}
