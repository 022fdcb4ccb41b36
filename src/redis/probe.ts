import { guarded, reasonOf, type RedisConnection } from './connection.js';
import { SCRIPT_NAMES } from './scripts.js';

export interface RedisProbe {
  readonly ok: boolean;
  readonly detail: string;
}

/** Our clock and Redis may differ by this much: Redis time opens the sale, ours only measures. */
const SKEW_MAX_MS = 2000;

/** Answers, in time, and not far from our clock. Never throws. */
export async function probeRedis({ redis, scriptsLoaded }: RedisConnection): Promise<RedisProbe> {
  const startedMs = Date.now();
  try {
    const [seconds, micros] = await redis.time();
    const redisMs = Number(seconds) * 1000 + Number(micros) / 1000;
    const skewMs = Math.round((startedMs + Date.now()) / 2 - redisMs);
    const detail = `clock skew ${skewMs} ms, ${await scriptsLoaded()} of ${SCRIPT_NAMES.length} scripts loaded`;
    if (Math.abs(skewMs) <= SKEW_MAX_MS) return { ok: true, detail };
    return { ok: false, detail: `${detail}: more than ${SKEW_MAX_MS} ms, set the clock of this host (NTP)` };
  } catch (error) {
    return { ok: false, detail: reasonOf(error) };
  }
}

/**
 * What must be true of a Redis before stock is put into it, as sentences; an empty list is good.
 * @throws OperationalError redis
 */
export async function findRedisMisconfiguration({ redis }: RedisConnection): Promise<string[]> {
  const info = await guarded('read the server settings', () => redis.info());
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
