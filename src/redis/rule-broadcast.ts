import { jsonOrText } from '../core/parse-json.js';
import type { RuleUpdate, RuleBroadcast } from '../core/ports/rules.js';
import { asOperationalError, type RedisConnection } from './connection.js';
import { RULES_KEY } from './keys.js';

/**
 * Stores the rules in Redis in a sorted set that holds a single version, with its number as score. So the newest
 * version wins, no matter in which order two publishers write, and nothing is sent to a reader that already has it.
 */
export function createRuleBroadcast({ redis }: RedisConnection, key = RULES_KEY): RuleBroadcast {
  return {
    newerThan: (version) =>
      asOperationalError('read the rules', async () => {
        const newer = `(${version}`;
        const [atLeast, found] = await Promise.all([
          redis.zcount(key, version, '+inf'),
          redis.zrevrangebyscore(key, '+inf', newer, 'WITHSCORES', 'LIMIT', 0, 1),
        ]);
        return atLeast === 0 ? { is: 'behind' } : updateOf(found);
      }),

    async announce({ version, rules }): Promise<void> {
      await asOperationalError('announce the rules', async () => {
        await redis.zadd(key, version, JSON.stringify(rules));
        await redis.zremrangebyrank(key, 0, -2);
      });
    },
  };
}

function updateOf([text, score]: readonly string[]): RuleUpdate {
  if (text === undefined) return { is: 'level' };
  // Someone wrote text by hand that is not JSON. It is passed on, and the reader refuses it as rules.
  return { is: 'newer', stored: { version: Number(score), rules: jsonOrText(text) } };
}
