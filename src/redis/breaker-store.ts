import type { Dependency } from '../core/errors.js';
import {
  BREAKER_STATES,
  type BreakerState,
  type BreakerStore,
  type LiveVote,
  type Vote,
} from '../core/ports/admission-stores.js';
import { asOperationalError, type RedisConnection } from './connection.js';
import { BREAKER_UNTIL_KEY, BREAKER_VOTES_KEY } from './keys.js';

/** The board of the breakers in Redis. */
export function createBreakerStore({ redis, run }: Pick<RedisConnection, 'redis' | 'run'>): BreakerStore {
  return {
    async exchange(processId, vote, lifeMs): Promise<readonly LiveVote[]> {
      const reply = await asOperationalError('vote for the breakers', () =>
        run('report-breakers', [BREAKER_VOTES_KEY, BREAKER_UNTIL_KEY], [processId, JSON.stringify(vote), lifeMs]),
      );
      return liveVotes(reply as readonly string[]);
    },

    async withdraw(processId): Promise<void> {
      await asOperationalError('take a vote back', () =>
        Promise.all([redis.zrem(BREAKER_UNTIL_KEY, processId), redis.hdel(BREAKER_VOTES_KEY, processId)]),
      );
    },
  };
}

function liveVotes(reply: readonly string[]): LiveVote[] {
  return reply.flatMap((processId, index) =>
    index % 2 === 0 ? [{ processId, vote: readVote(reply[index + 1] ?? '') }] : [],
  );
}

/** What cannot be read speaks of no trouble. */
function readVote(text: string): Vote {
  const said = parsed(text);
  const stateOf = (dependency: Dependency): BreakerState =>
    BREAKER_STATES.find((state) => state === said?.[dependency]) ?? 'closed';
  return { redis: stateOf('redis'), rocketmq: stateOf('rocketmq'), mysql: stateOf('mysql') };
}

function parsed(text: string): Partial<Record<Dependency, unknown>> | null {
  try {
    return JSON.parse(text) as Partial<Record<Dependency, unknown>> | null;
  } catch {
    return null; // not from us, or from another release: `readVote` says what that means
  }
}
