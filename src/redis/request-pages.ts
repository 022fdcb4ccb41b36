import type { RedisClient } from './connection.js';
import { parseRequestEntry, type RequestEntry } from '../core/outcome.js';
import type { StoredRequest } from '../core/ports/reconcile-store.js';
import { scanHash, SCAN_COUNT } from './scan-hash.js';

/**
 * The requests of a bucket, in pages; those that come meanwhile may be missing, and one may come twice.
 * @throws OperationalError redis
 */
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
