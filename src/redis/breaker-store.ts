import type { Dependency } from '../core/errors.js';
import {
  BREAKER_STATES,
  type BreakerReport,
  type BreakerState,
  type BreakerStore,
  type LiveReport,
} from '../core/ports/admission-stores.js';
import { jsonOrNull } from '../core/parse-json.js';
import { asOperationalError, type RedisConnection } from './connection.js';
import { BREAKER_UNTIL_KEY, BREAKER_VOTES_KEY } from './keys.js';

export function createBreakerStore({ redis, run }: RedisConnection): BreakerStore {
  return {
    async exchange(processId, report, lifeMs): Promise<readonly LiveReport[]> {
      const reply = await asOperationalError('report the breakers', () =>
        run('report-breakers', [BREAKER_VOTES_KEY, BREAKER_UNTIL_KEY], [processId, JSON.stringify(report), lifeMs]),
      );
      return liveReports(reply as readonly string[]);
    },

    async withdraw(processId): Promise<void> {
      await asOperationalError('withdraw a breaker report', () =>
        Promise.all([redis.zrem(BREAKER_UNTIL_KEY, processId), redis.hdel(BREAKER_VOTES_KEY, processId)]),
      );
    },
  };
}

function liveReports(reply: readonly string[]): LiveReport[] {
  return reply.flatMap((processId, index) =>
    index % 2 === 0 ? [{ processId, report: readReport(reply[index + 1] ?? '') }] : [],
  );
}

/** Treats an unreadable report, such as that of another release, as a closed breaker. */
function readReport(text: string): BreakerReport {
  const stored = jsonOrNull(text) as Partial<Record<Dependency, unknown>> | null;
  const stateOf = (dependency: Dependency): BreakerState =>
    BREAKER_STATES.find((state) => state === stored?.[dependency]) ?? 'closed';
  return { redis: stateOf('redis'), rocketmq: stateOf('rocketmq'), mysql: stateOf('mysql') };
}
