import type { Redis } from 'ioredis';

/** Fields per step; short enough not to hold Redis up. */
const SCAN_COUNT = 2000;

/** Walks a hash. What stands there all the time comes at least once; the rest may or may not. */
export async function* scanHash(
  redis: Redis,
  key: string,
  pattern = '*',
): AsyncGenerator<[field: string, value: string]> {
  let cursor = '0';
  do {
    const [next, pairs] = await redis.hscan(key, cursor, 'MATCH', pattern, 'COUNT', SCAN_COUNT);
    cursor = next;
    for (let i = 0; i + 1 < pairs.length; i += 2) yield [pairs[i] as string, pairs[i + 1] as string];
  } while (cursor !== '0');
}
