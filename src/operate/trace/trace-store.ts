import type { BucketRef } from '../../core/bucket.js';
import { Bug } from '../../core/errors.js';
import { parseRequestEntry, type RequestEntry } from '../../core/outcome.js';
import { purchaseKey, splitPurchaseKey } from '../../core/purchase.js';
import { asOperationalError, type RedisConnection } from '../../redis/connection.js';
import { bucketKeys } from '../../redis/keys.js';
import { markerBody } from '../../redis/replies.js';
import { scanHash } from '../../redis/scan-hash.js';

/** Maximum number of pending batches that are searched. Far more than are pending while workers run. */
const PENDING_SEARCHED = 2_000;
/** Limits the size of the reply: a marker may have some 20 kB, and buyers wait behind it. */
const MARKERS_PER_READ = 50;

export interface TracedBatch {
  /** The kind of the marker. Null if it was never written or has expired. */
  readonly marker: 'deducted' | 'aborted' | 'claimed' | null;
  /** The body of the batch, until it is recorded. */
  readonly body: string | null;
  /** When the batch was deducted, Unix ms by the clock of Redis. Null if it is not in `pending`. */
  readonly pendingSinceMs: number | null;
}

export type TraceStore = ReturnType<typeof createTraceStore>;

/** Changes nothing. Every method throws OperationalError redis. */
export function createTraceStore({ redis }: RedisConnection) {
  return {
    /** Returns buyers with an accepted request of this id. Reads all requests of the bucket, in chunks. */
    async buyersOf(ref: BucketRef, requestId: string, max: number): Promise<string[]> {
      const found = new Set<string>(); // a scan may yield a field twice
      // A request id contains no character that is special in a pattern.
      for await (const [key] of scanHash(redis, bucketKeys(ref).requests, `*/${requestId}`)) {
        found.add(splitPurchaseKey(key).userId);
        if (found.size >= max) break;
      }
      return [...found];
    },

    /** Returns the entry of one request as it is, even if the bucket may have lost later writes. */
    async entryOf(ref: BucketRef, userId: string, requestId: string): Promise<RequestEntry | null> {
      const field = purchaseKey({ userId, requestId });
      const entry = await asOperationalError('read a request', () => redis.hget(bucketKeys(ref).requests, field));
      return entry === null ? null : parseRequestEntry(entry);
    },

    async unitsOf(ref: BucketRef, userId: string): Promise<number> {
      return Number(
        await asOperationalError('read the units of a buyer', () => redis.hget(bucketKeys(ref).buyers, userId)),
      );
    },

    /** Returns bodies of batches in `pending` that name this trace id, among the newest 2,000. */
    async pendingWith(ref: BucketRef, traceId: string): Promise<string[]> {
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

    async readBatch(ref: BucketRef, batchId: string): Promise<TracedBatch> {
      const { tx, pending } = bucketKeys(ref);
      const [text, score] = await asOperationalError('read a batch', () =>
        Promise.all([redis.get(tx + batchId), redis.zscore(pending, batchId)]),
      );
      return { ...readMarker(text), pendingSinceMs: score === null ? null : Number(score) };
    },
  };
}

const MARKERS = ['deducted', 'aborted', 'claimed'] as const;

/** Reads a marker: its kind, followed by the batch until that is recorded. */
function readMarker(text: string | null) {
  if (text === null) return { marker: null, body: null };
  const marker = MARKERS.find((word) => text.startsWith(word));
  if (marker === undefined) throw new Bug(`the marker ${text.slice(0, 20)} cannot be read`);
  return { marker, body: markerBody(text) };
}
