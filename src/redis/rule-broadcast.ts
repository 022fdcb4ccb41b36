import type { RuleAnnouncement, RuleBroadcast } from '../core/ports/rules.js';
import { asOperationalError, type RedisConnection } from './connection.js';
import { RULES_KEY } from './keys.js';

/**
 * The rules in Redis: a sorted set that holds one version, its number as score. So the newest one wins whatever the
 * order in which two publishers come, and whoever knows it is sent nothing when he asks.
 */
export function createRuleBroadcast({ redis }: RedisConnection, key = RULES_KEY): RuleBroadcast {
  return {
    notificationsSince: (version) =>
      asOperationalError('read the rules', async () => {
        const newer = `(${version}`;
        const [atLeast, found] = await Promise.all([
          redis.zcount(key, version, '+inf'),
          redis.zrevrangebyscore(key, '+inf', newer, 'WITHSCORES', 'LIMIT', 0, 1),
        ]);
        return atLeast === 0 ? { board: 'behind' } : notificationsOf(found);
      }),

    async post({ version, rules }): Promise<void> {
      await asOperationalError('put up the rules', async () => {
        await redis.zadd(key, version, JSON.stringify(rules));
        await redis.zremrangebyrank(key, 0, -2);
      });
    },
  };
}

function notificationsOf([text, score]: readonly string[]): RuleAnnouncement {
  if (text === undefined) return { board: 'level' };
  return { board: 'newer', stored: { version: Number(score), rules: readJson(text) } };
}

/** What somebody wrote by hand is handed on as it is, and refused where it is read as rules. */
function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
