import { type RedisClient, asOperationalError } from './connection.js';
import { parseRequestEntry, type RequestEntry } from '../core/outcome.js';
import type { StoredRequest } from '../core/ports/reconcile-store.js';

/** Number of fields per step. Small enough not to hold up Redis. */
const SCAN_COUNT = 2000;

/** Yields a field that exists throughout the scan at least once. @throws OperationalError redis */
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

/** Requests added during the scan may be missing, and a request may appear twice. @throws OperationalError redis */
export async function* requestPages(
  redis: RedisClient,
  key: string,
  isWanted: (entry: RequestEntry) => boolean = () => true,
): AsyncGenerator<StoredRequest[]> {
  let page: StoredRequest[] = [];
  for await (const [field, text] of scanHash(redis, key)) {
    const entry = parseRequestEntry(text);
    if (entry !== null && isWanted(entry)) page.push([field, entry]);
    if (page.length < SCAN_COUNT) continue;
    yield page;
    page = [];
  }
  if (page.length > 0) yield page;
}
