import { Cluster } from 'ioredis';
import { bucketsOfBatch, type Batch } from '../core/batch.js';
import { Bug, OperationalError, SaleInRepair } from '../core/errors.js';
import { encodeOrderNotifications } from '../core/order-notifications.js';
import { parseRequestEntry } from '../core/outcome.js';
import { purchaseKey, type Purchase } from '../core/purchase.js';
import { homeBucket, type BucketRef } from '../core/bucket.js';
import {
  UNPARK_WORDS,
  type DueBatches,
  type Reacquired,
  type PendingBatch,
  type Release,
  type BatchStore,
  type Unparked,
} from '../core/ports/batch-store.js';
import {
  asOperationalError,
  eachOrFault,
  redisFault,
  serverNowMs,
  type RedisClient,
  type RedisConnection,
} from './connection.js';
import { bucketKeys, notificationsChannel, type BucketKeys } from './keys.js';
import { createRepairAsks } from './repair-asks.js';
import { markerBody, asList } from './replies.js';

/**
 * Maximum number of scripts of one call that run at once. Purchases wait behind them: after a mass expiry, tens of
 * thousands at once would exceed the reply time-out.
 */
const RELEASES_AT_ONCE = 64;
/** Number of entries that a script examines per call. This takes the server about a millisecond. */
const LOOKED_AT_PER_CALL = 1_000;
/** Limits the size of a reply, and the time to far below any reply time-out. */
const REFS_PER_PIPELINE = 500;

type RecordedBatch = Parameters<BatchStore['markRecorded']>[0][number];

export function createBatchStore(connection: RedisConnection): BatchStore {
  const { redis, run } = connection;
  const { askForRepair } = createRepairAsks(connection.redis);
  return {
    async markRecorded(recorded): Promise<void> {
      const replies = await asOperationalError('mark batches as recorded', () =>
        Promise.all(recorded.map((one) => markRecorded(connection, one))),
      );
      throwIfInRepair('mark batches as recorded', replies);
    },

    async reacquire(batch, epoch, recorded): Promise<Reacquired> {
      const reacquired = await reacquireInHomeBuckets(connection, batch, epoch, recorded);
      if (reacquired.outcome !== 'claimed') await askForRepair(batch.saleId);
      return reacquired;
    },

    async release(releases): Promise<('released' | 'nothing')[]> {
      const words = await asOperationalError('release', async () => {
        const buckets = await currentBuckets(redis, releases);
        const done: unknown[] = [];
        for (let start = 0; start < releases.length; start += RELEASES_AT_ONCE) {
          const some = releases.slice(start, start + RELEASES_AT_ONCE);
          done.push(...(await Promise.all(some.map((one, i) => releaseOne(run, one, buckets[start + i] ?? null)))));
        }
        return done;
      });
      throwIfInRepair('release', words);
      return words.map((word) => {
        if (word !== 'released' && word !== 'nothing')
          throw new Bug(`release returned the unknown word ${String(word)}`);
        return word;
      });
    },

    async stalePending(ref, olderThanMs, max, wanted, skip = 0): Promise<PendingBatch[]> {
      const what = 'read pending batches';
      const keys = bucketKeys(ref);
      let stale = await asOperationalError(what, () => staleIn(redis, keys, olderThanMs, { skip, max }));
      if (wanted !== undefined && stale.length > 0) {
        const those = await wanted(stale.map(({ batchId }) => batchId));
        stale = stale.filter(({ batchId }) => those.has(batchId));
      }
      return asOperationalError(what, () => withBodies(redis, keys, stale));
    },

    takeDue: (ref, terms) => asOperationalError('take batches', () => takeDue(connection, ref, terms)),

    async leaveAlone(ref, pauses): Promise<void> {
      const list = JSON.stringify(pauses.map(({ batchId, forMs }) => [batchId, Math.ceil(forMs)]));
      await asOperationalError('leave-alone', () => run('leave-alone', [bucketKeys(ref).redrives], [list]));
    },

    async withPending(refs) {
      const found: BucketRef[] = [];
      const faults: OperationalError[] = [];
      for (let start = 0; start < refs.length; start += REFS_PER_PIPELINE) {
        const slice = refs.slice(start, start + REFS_PER_PIPELINE);
        for (const [index, count] of (await countPending(redis, slice)).entries()) {
          if (count instanceof OperationalError) faults.push(count);
          else if (count > 0) found.push(slice[index] as BucketRef);
        }
      }
      return { refs: found, faults };
    },

    async pendingSummary(ref): Promise<{ batches: number; oldestMs: number }> {
      const { pending } = bucketKeys(ref);
      const [batches, oldest, nowMs] = await asOperationalError('count pending batches', () =>
        Promise.all([redis.zcard(pending), redis.zrange(pending, '0', '0', 'WITHSCORES'), serverNowMs(redis, pending)]),
      );
      return { batches, oldestMs: oldest[1] === undefined ? 0 : Math.max(0, nowMs - Number(oldest[1])) };
    },

    async overduePending(ref, afterMs): Promise<{ batches: number; oldestMs: number }> {
      const { pending } = bucketKeys(ref);
      return asOperationalError('count late batches', async () => {
        const dueMs = (await serverNowMs(redis, pending)) - afterMs;
        const [batches, oldest] = await Promise.all([
          redis.zcount(pending, 0, `(${dueMs}`),
          redis.zrange(pending, '0', '0', 'WITHSCORES'),
        ]);
        const lateMs = oldest[1] === undefined ? 0 : dueMs - Number(oldest[1]);
        return { batches, oldestMs: Math.max(0, lateMs) };
      });
    },

    async park(batch): Promise<void> {
      await asOperationalError('park', async () => {
        const buckets = bucketsOfBatch(batch, await readEpochAndBuckets(redis, batch));
        const keys = buckets.map((bucket) => bucketKeys({ saleId: batch.saleId, bucket }));
        return Promise.all(
          keys.flatMap(({ pending, redrives }) => [pending, redrives].map((key) => redis.zrem(key, batch.batchId))),
        );
      });
    },

    heldElsewhere: (batch) => asOperationalError('read requests', () => heldElsewhere(redis, batch)),

    async unpark(batch): Promise<Unparked> {
      const word = await unparkInAllBuckets(connection, batch);
      if (word === 'unknown') await askForRepair(batch.saleId);
      return word;
    },
  };
}

/**
 * The batch's own bucket knows whether the sale was resharded since. If so, other buckets hold some requests too.
 * @returns the status word of the script
 */
async function markRecorded(connection: RedisConnection, { batch, orders }: RecordedBatch): Promise<unknown> {
  const [word, , epoch, buckets] = asList(await markRecordedIn(connection, batch, batch.bucket, orders));
  if (word !== 'recorded') return word;
  const others = bucketsOfBatch(batch, { epoch: Number(epoch), buckets: Number(buckets) }).slice(1);
  const replies = await Promise.all(others.map((bucket) => markRecordedIn(connection, batch, bucket, orders)));
  return replies.map((reply) => asList(reply)[0]).find((other) => other !== 'recorded') ?? word;
}

function markRecordedIn(
  { run, markerLifeMs }: RedisConnection,
  { saleId, batchId }: Batch,
  bucket: number,
  orders: RecordedBatch['orders'],
): Promise<unknown> {
  const { requests, pending, tx, sale } = bucketKeys({ saleId, bucket });
  const keys = [requests, pending, tx + batchId, sale];
  const args = [batchId, encodeOrderNotifications(orders), notificationsChannel(saleId), markerLifeMs];
  return run('mark-recorded', keys, args);
}

/** In any other epoch, the script refuses. */
async function reacquireInHomeBuckets(
  { redis, run }: RedisConnection,
  batch: Batch,
  epoch: number,
  recorded: ReadonlySet<string>,
): Promise<Reacquired> {
  const { buckets, ...terms } = await asOperationalError('read a sale', () => readEpochAndBuckets(redis, batch));
  if (terms.epoch !== 0 && terms.epoch !== epoch) return { outcome: 'unavailable' }; // it may have other buckets
  const [lost, elsewhere] = [new Set<string>(), new Set<string>()];
  // The batch's own bucket goes first: it puts the batch into `pending`, where the re-drive finds it if this process
  // dies.
  for (const bucket of new Set([batch.bucket, ...homeBucketsOf(batch, buckets)])) {
    const others = batch.purchases.filter(({ userId }) => buckets > 1 && homeBucket(userId, buckets) !== bucket);
    const skipped = new Set([...recorded, ...others.map(purchaseKey)]);
    const reply = await reacquireIn(run, batch, bucket, epoch, skipped);
    if (reply.outcome !== 'claimed') return reply;
    for (const key of reply.lost) lost.add(key);
    for (const key of reply.elsewhere) elsewhere.add(key);
  }
  return { outcome: 'claimed', lost, elsewhere };
}

async function reacquireIn(
  run: RedisConnection['run'],
  batch: Batch,
  bucket: number,
  epoch: number,
  skipped: ReadonlySet<string>,
): Promise<Reacquired> {
  const { stock, sale, buyers, requests, tx, pending } = bucketKeys({ saleId: batch.saleId, bucket });
  const keys = [stock, sale, buyers, requests, tx + batch.batchId, pending];
  const args = [batch.body, epoch, JSON.stringify([...skipped])];
  return parseReacquired(asList(await asOperationalError('reacquire', () => run('reacquire', keys, args))));
}

async function heldElsewhere(redis: RedisClient, batch: Batch): Promise<Set<string>> {
  const { saleId, batchId, purchases } = batch;
  const { buckets } = await readEpochAndBuckets(redis, batch);
  const homeOf = ({ userId }: Purchase): number => (buckets > 1 ? homeBucket(userId, buckets) : batch.bucket);
  const held = new Set<string>();
  for (const bucket of new Set(purchases.map(homeOf))) {
    const keys = purchases.filter((purchase) => homeOf(purchase) === bucket).map(purchaseKey);
    const entries = await redis.hmget(bucketKeys({ saleId, bucket }).requests, ...keys);
    keys.forEach((key, index) => {
      const entry = parseRequestEntry(entries[index] ?? '');
      if (entry?.state === 'held' && entry.batchId !== batchId) held.add(key);
    });
  }
  return held;
}

/** @returns the status word of the batch's own bucket, which always has the marker */
async function unparkInAllBuckets({ redis, run }: RedisConnection, batch: Batch): Promise<Unparked> {
  const word = await unparkIn(run, batch, batch.bucket);
  if (word !== 'unparked' && word !== 'already_pending') return word;
  const [, ...others] = bucketsOfBatch(
    batch,
    await asOperationalError('read a sale', () => readEpochAndBuckets(redis, batch)),
  );
  for (const bucket of others) await unparkIn(run, batch, bucket);
  return word;
}

async function unparkIn(run: RedisConnection['run'], { saleId, batchId }: Batch, bucket: number): Promise<Unparked> {
  const { tx, pending } = bucketKeys({ saleId, bucket });
  const reply = await asOperationalError('unpark', () => run('unpark', [tx + batchId, pending], [batchId]));
  const word = UNPARK_WORDS.find((known) => known === reply);
  if (word === undefined) throw new Bug(`unpark returned ${String(reply)}`);
  return word;
}

const homeBucketsOf = ({ purchases }: Batch, buckets: number): number[] =>
  buckets > 1 ? purchases.map(({ userId }) => homeBucket(userId, buckets)) : [];

/** Reads epoch and number of buckets of a sale from this bucket. A value is 0 if the bucket does not know it. */
async function readEpochAndBuckets(redis: RedisClient, ref: BucketRef): Promise<{ epoch: number; buckets: number }> {
  const [epoch, buckets] = await redis.hmget(bucketKeys(ref).sale, 'epoch', 'buckets');
  return { epoch: Number(epoch), buckets: Number(buckets) };
}

/**
 * Finds the bucket of each release's request: the sale may have been resharded since the release went into the outbox.
 * Reads after the commit of the ended row, so a reshard before or after this read finds that row.
 * @returns buckets in order; null while the sale is being rebuilt in Redis
 */
async function currentBuckets(redis: RedisClient, releases: readonly Release[]): Promise<(number | null)[]> {
  const saleIds = [...new Set(releases.map(({ saleId }) => saleId))];
  const fieldsBySale = new Map(
    await Promise.all(
      saleIds.map(async (saleId) => {
        const fields = await redis.hmget(bucketKeys({ saleId, bucket: 0 }).sale, 'state', 'buckets');
        return [saleId, fields] as const;
      }),
    ),
  );
  return releases.map(({ saleId, bucket, userId }) => {
    const [state, buckets] = fieldsBySale.get(saleId) ?? [];
    if (state === 'repair') return null;
    return buckets ? homeBucket(userId, Number(buckets)) : bucket;
  });
}

async function releaseOne(run: RedisConnection['run'], release: Release, bucket: number | null): Promise<unknown> {
  if (bucket === null) return 'repairing';
  const keys = bucketKeys({ saleId: release.saleId, bucket });
  const { userId, requestId, batchId, orderId, withUnits } = release;
  const args = [userId, requestId, batchId, orderId, withUnits ? 1 : 0];
  const [word] = asList(await run('release', [keys.stock, keys.buyers, keys.requests, keys.sale], args));
  return word;
}

/** Throws during a repair. A repair takes seconds, and everything after this point is safe to repeat. */
function throwIfInRepair(what: string, words: readonly unknown[]): void {
  if (!words.includes('repairing')) return;
  throw new SaleInRepair(what);
}

const keysIn = (list: unknown): Set<string> => new Set(asList(list).map(String));

function parseReacquired([word, lost, elsewhere]: readonly unknown[]): Reacquired {
  switch (word) {
    case 'claimed':
      return { outcome: word, lost: keysIn(lost), elsewhere: keysIn(elsewhere) };
    case 'unavailable':
    case 'not_warmed':
      return { outcome: word };
    default:
      throw new Bug(`reacquire returned ${String(word)}`);
  }
}

/** Uses a pipeline, because separate commands would cost the keeper and Redis a system call per sale. */
async function countPending(redis: RedisClient, refs: readonly BucketRef[]): Promise<(number | OperationalError)[]> {
  const what = 'find buckets with pending batches';
  const keys = refs.map((ref) => bucketKeys(ref).pending);
  // a pipeline goes to one server
  if (redis instanceof Cluster) return eachOrFault(what, keys, (key) => redis.zcard(key));
  const replies = await redis
    .pipeline(keys.map((key) => ['zcard', key]))
    .exec()
    .catch((cause: unknown) => keys.map(() => [cause, null] as const));
  return keys.map((_, index) => {
    const [error, count] = replies?.[index] ?? [new Error('the pipeline was cut off')];
    return error ? redisFault(what, error) : Number(count);
  });
}

async function staleIn(
  redis: RedisClient,
  keys: BucketKeys,
  olderThanMs: number,
  { skip, max }: { readonly skip: number; readonly max: number },
): Promise<{ batchId: string; ageMs: number }[]> {
  const nowMs = await serverNowMs(redis, keys.pending);
  const found = await redis.zrangebyscore(keys.pending, 0, nowMs - olderThanMs, 'WITHSCORES', 'LIMIT', skip, max);
  const stale: { batchId: string; ageMs: number }[] = [];
  for (let i = 0; i < found.length; i += 2) {
    stale.push({ batchId: found[i] as string, ageMs: nowMs - Number(found[i + 1]) });
  }
  return stale;
}

async function takeDue(
  { redis, run }: RedisConnection,
  ref: BucketRef,
  { olderThanMs, leaseMs, max, fromMs }: Parameters<BatchStore['takeDue']>[1],
): Promise<DueBatches> {
  const keys = bucketKeys(ref);
  const args = [olderThanMs, leaseMs, max, LOOKED_AT_PER_CALL, fromMs];
  const [nowMs, nextFromMs, more, ...taken] = asList(await run('take-due', [keys.pending, keys.redrives], args));
  const due: { batchId: string; ageMs: number }[] = [];
  for (let i = 0; i < taken.length; i += 2) {
    due.push({ batchId: String(taken[i]), ageMs: Number(nowMs) - Number(taken[i + 1]) });
  }
  return { batches: await withBodies(redis, keys, due), nextFromMs: Number(nextFromMs), more: more === 1 };
}

/** Adds the bodies that a re-drive sends. Drops batches recorded since the first read. */
async function withBodies(
  redis: RedisClient,
  keys: BucketKeys,
  stale: readonly { batchId: string; ageMs: number }[],
): Promise<PendingBatch[]> {
  if (stale.length === 0) return [];
  const markers = await redis.mget(stale.map(({ batchId }) => keys.tx + batchId));
  const batches = stale.map((batch, index) => ({ ...batch, body: markerBody(markers[index] ?? null) }));
  const bodiless = batches.filter(({ body }) => body === null).map(({ batchId }) => batchId);
  if (bodiless.length === 0) return batches;
  // The batch was most likely recorded between the two reads, and is then no longer pending.
  const scores = await Promise.all(bodiless.map((batchId) => redis.zscore(keys.pending, batchId)));
  const done = new Set(bodiless.filter((_, index) => scores[index] === null));
  return batches.filter(({ batchId }) => !done.has(batchId));
}
