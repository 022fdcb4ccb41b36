import { Bug } from '../../core/errors.js';
import { parseRequestEntry, type RequestEntry } from '../../core/outcome.js';
import { purchaseKey, splitPurchaseKey } from '../../core/purchase.js';
import type { TraceStore } from '../../core/ports/trace-sources.js';
import { asOperationalError, type RedisConnection } from '../../redis/connection.js';
import { bucketKeys } from '../../redis/keys.js';
import { markerBody } from '../../redis/replies.js';
import { scanHash } from '../../redis/scan-hash.js';

/** Pending batches searched; far more than are pending while workers run. */
const PENDING_SEARCHED = 2_000;
/** Bounds the reply: a marker may have some 20 kB, and buyers wait behind it. */
const MARKERS_PER_READ = 50;

export function createTraceStore({ redis }: RedisConnection): TraceStore {
  return {
    async buyersOf(ref, requestId, max): Promise<string[]> {
      const found = new Set<string>(); // a scan may yield a field twice
      // A request id has no character with a special meaning in a pattern.
      for await (const [key] of scanHash(redis, bucketKeys(ref).requests, `*/${requestId}`)) {
        found.add(splitPurchaseKey(key).userId);
        if (found.size >= max) break;
      }
      return [...found];
    },

    async entryOf(ref, userId, requestId): Promise<RequestEntry | null> {
      const field = purchaseKey({ userId, requestId });
      const entry = await asOperationalError('read a request', () => redis.hget(bucketKeys(ref).requests, field));
      return entry === null ? null : parseRequestEntry(entry);
    },

    async unitsOf(ref, userId): Promise<number> {
      return Number(
        await asOperationalError('read the units of a buyer', () => redis.hget(bucketKeys(ref).buyers, userId)),
      );
    },

    async pendingWith(ref, traceId) {
      const { pending, tx } = bucketKeys(ref);
      const what = 'search pending batches';
      const batchIds = await asOperationalError(what, () => redis.zrevrange(pending, 0, PENDING_SEARCHED - 1));
      const bodies: string[] = [];
      for (let from = 0; from < batchIds.length; from += MARKERS_PER_READ) {
        const keys = batchIds.slice(from, from + MARKERS_PER_READ).map((batchId) => tx + batchId);
        for (const marker of await asOperationalError(what, () => redis.mget(keys))) {
          const body = marker?.includes(`"${traceId}"`) ? markerBody(marker) : null;
          if (body !== null) bodies.push(body);
        }
      }
      return bodies;
    },

    async readBatch(ref, batchId) {
      const { tx, pending } = bucketKeys(ref);
      const [text, score] = await asOperationalError('read a batch', () =>
        Promise.all([redis.get(tx + batchId), redis.zscore(pending, batchId)]),
      );
      return { ...readMarker(text), pendingSinceMs: score === null ? null : Number(score) };
    },
  };
}

const MARKERS = ['deducted', 'aborted', 'claimed'] as const;

/** Reads a marker: its kind, followed by the batch until the batch is recorded. */
function readMarker(text: string | null) {
  if (text === null) return { marker: null, body: null };
  const marker = MARKERS.find((word) => text.startsWith(word));
  if (marker === undefined) throw new Bug(`a marker begins with ${text.slice(0, 20)}`);
  return { marker, body: markerBody(text) };
}
