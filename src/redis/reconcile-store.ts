import { Bug } from '../core/errors.js';
import { parseRequestEntry, type RequestEntry } from '../core/outcome.js';
import {
  ADJUST_WORDS,
  type Adjusted,
  type BucketUnits,
  type StoredBatch,
  type PendingAge,
  type ReconcileStore,
} from '../core/ports/reconcile-store.js';
import { asOperationalError, serverNowMs, type RedisClient, type RedisConnection } from './connection.js';
import { bucketKeys, type BucketKeys } from './keys.js';
import { markerBody } from './replies.js';
import { parseTransfers } from './transfer-store.js';
import { requestPages, scanHash } from './scan-hash.js';

/** Limits the size of a reply, and the time to far below any reply time-out. */
const BATCHES_PER_PIPELINE = 500;
/** Number of characters of a marker that show whether its kind is followed by a body. */
const MARKER_HEAD_END = 15;

export function createReconcileStore({ redis, run }: RedisConnection): ReconcileStore {
  return {
    requests: (ref) => requestPages(redis, bucketKeys(ref).requests),

    async entriesOf(ref, keys): Promise<(RequestEntry | null)[]> {
      if (keys.length === 0) return [];
      const texts = await asOperationalError('read requests', () => redis.hmget(bucketKeys(ref).requests, ...keys));
      return texts.map((text) => (text === null ? null : parseRequestEntry(text)));
    },

    batch: (ref, batchId) => asOperationalError('read a batch', () => readBatch(redis, bucketKeys(ref), batchId)),
    pendingAmong: (ref, batchIds) =>
      asOperationalError('find batches in pending', () => pendingAmong(redis, bucketKeys(ref), batchIds)),
    units: (ref, youngMs) => asOperationalError('sum up a bucket', () => readUnits(redis, bucketKeys(ref), youngMs)),

    async adjust(ref, { read, wanted, epoch }): Promise<Adjusted> {
      const { stock, sale } = bucketKeys(ref);
      const reply = await asOperationalError('adjust', () => run('adjust', [stock, sale], [read, wanted, epoch]));
      const word = ADJUST_WORDS.find((known) => known === reply);
      if (word === undefined) throw new Bug(`adjust returned the unknown word ${String(reply)}`);
      return word;
    },

    async recordedMarkers(ref, batchIds): Promise<string[]> {
      if (batchIds.length === 0) return [];
      const { tx, pending } = bucketKeys(ref);
      const [markers, scores] = await asOperationalError('read markers', () =>
        Promise.all([
          redis.mget(batchIds.map((batchId) => tx + batchId)),
          Promise.all(batchIds.map((batchId) => redis.zscore(pending, batchId))),
        ]),
      );
      const isRecorded = (marker: string | null | undefined): boolean => marker === 'deducted' || marker === 'claimed';
      return batchIds.filter((_, index) => isRecorded(markers[index]) && scores[index] === null);
    },

    async removeMarkers(ref, batchIds): Promise<number> {
      if (batchIds.length === 0) return 0;
      const { tx } = bucketKeys(ref);
      return asOperationalError('remove markers', () => redis.unlink(batchIds.map((batchId) => tx + batchId)));
    },
  };
}

async function readBatch(redis: RedisClient, { tx, pending }: BucketKeys, batchId: string): Promise<StoredBatch> {
  const [score, marker, nowMs] = await Promise.all([
    redis.zscore(pending, batchId),
    redis.get(tx + batchId),
    serverNowMs(redis, pending),
  ]);
  const kind = /^[a-z]+/.exec(marker ?? '')?.[0];
  return {
    pendingMs: score === null ? null : Math.max(0, nowMs - Number(score)),
    marker: kind === 'deducted' || kind === 'claimed' || kind === 'aborted' ? kind : null,
    body: markerBody(marker),
  };
}

/** Reads no bodies, because for a page of requests these would be megabytes. */
async function pendingAmong(
  redis: RedisClient,
  { tx, pending }: BucketKeys,
  batchIds: readonly string[],
): Promise<Map<string, PendingAge>> {
  const found = new Map<string, PendingAge>();
  for (let start = 0; start < batchIds.length; start += BATCHES_PER_PIPELINE) {
    const slice = batchIds.slice(start, start + BATCHES_PER_PIPELINE);
    const [scores, nowMs] = await Promise.all([redis.zmscore(pending, ...slice), serverNowMs(redis, pending)]);
    const waiting = slice.flatMap((batchId, index) => {
      const score = scores[index] ?? null;
      return score === null ? [] : [{ batchId, pendingMs: Math.max(0, nowMs - Number(score)) }];
    });
    const heads = await Promise.all(waiting.map(({ batchId }) => redis.getrange(tx + batchId, 0, MARKER_HEAD_END)));
    for (const [index, { batchId, pendingMs }] of waiting.entries()) {
      found.set(batchId, { pendingMs, hasBody: heads[index]?.includes('{') === true });
    }
  }
  return found;
}

/** A hash cannot be added up at a single moment. The stock before and after shows whether anything changed. */
async function readUnits(redis: RedisClient, keys: BucketKeys, youngMs: number): Promise<BucketUnits | null> {
  const before = await redis.get(keys.stock);
  if (before === null) return null;
  const buyers = new Map<string, number>(); // a field may appear twice
  for await (const [user, units] of scanHash(redis, keys.buyers)) buyers.set(user, Number(units));
  let unitsOfBuyers = 0;
  for (const units of buyers.values()) unitsOfBuyers += units;
  const nowMs = await serverNowMs(redis, keys.pending);
  const [pending, youngPending, transferFields, after] = await Promise.all([
    redis.zcard(keys.pending),
    redis.zcount(keys.pending, `(${nowMs - youngMs}`, '+inf'),
    redis.hgetall(keys.transfers),
    redis.get(keys.stock),
  ]);
  const transfers = parseTransfers(transferFields, nowMs);
  return { unitsLeft: Number(before), unitsOfBuyers, moved: after !== before, pending, youngPending, transfers };
}
