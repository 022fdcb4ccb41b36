import { asOperationalError, type RedisClient } from './connection.js';

/** Fields per step; short enough not to hold Redis up. */
export const SCAN_COUNT = 2000;

/**
 * Every field of a hash that fits the pattern, step by step; one that is there all the time comes at least once.
 * @throws OperationalError redis
 */
export async function* scanHash(
  redis: RedisClient,
  key: string,
  pattern = '*',
): AsyncGenerator<[field: string, value: string]> {
  let cursor = '0';
  do {
    const [next, pairs] = await asOperationalError('read a hash', () =>
      redis.hscan(key, cursor, 'MATCH', pattern, 'COUNT', SCAN_COUNT),
    );
    cursor = next;
    for (let i = 0; i + 1 < pairs.length; i += 2) yield [pairs[i] as string, pairs[i + 1] as string];
  } while (cursor !== '0');
}
