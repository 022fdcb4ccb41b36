import { jsonOrText } from '../core/parse-json.js';
import type { RuleUpdate, RuleBroadcast } from '../core/ports/rules.js';
import { asOperationalError, pipelined, type RedisConnection } from './connection.js';
import { canaryKey, RULES_KEY } from './keys.js';

/**
 * Rules and canary are sorted sets with a single version each, whose number is the score. The newest version wins in
 * whatever order two publishers write, and a reader that has it is sent nothing.
 */
export function createRuleBroadcast({ redis }: RedisConnection, key = RULES_KEY): RuleBroadcast {
  const put = async (to: string, version: number, value: unknown): Promise<void> => {
    await redis.zadd(to, 'GT', version, JSON.stringify(value)); // GT: the same text may be an older version too
    await redis.zremrangebyrank(to, 0, -2);
  };
  return {
    newerThan: (version) =>
      asOperationalError('read the rules', async () => {
        const newest = (from: string) => ['zrevrangebyscore', from, '+inf', `(${version}`, 'WITHSCORES', 'LIMIT', 0, 1];
        const counting = ['zcount', key, version, '+inf'];
        const replies = await pipelined(redis, [counting, newest(key), newest(canaryKey(key))]);
        const [atLeast, rules, canary] = replies as [number, string[], string[]];
        return atLeast === 0 ? { is: 'behind' } : updateOf(rules, canary);
      }),

    async announce({ version, rules, canary }): Promise<void> {
      await asOperationalError('announce the rules', () =>
        Promise.all([put(canaryKey(key), version, canary), put(key, version, rules)]),
      );
    },
  };
}

function updateOf([rules, score]: readonly string[], [canary, canaryScore]: readonly string[]): RuleUpdate {
  if (rules === undefined) return { is: 'level' };
  if (canary === undefined || canaryScore !== score) return { is: 'behind' };
  // Text that is not JSON was written by hand. The reader refuses it as rules.
  return { is: 'newer', stored: { version: Number(score), rules: jsonOrText(rules), canary: jsonOrText(canary) } };
}
