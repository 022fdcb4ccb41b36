import { Cluster } from 'ioredis';
import { bucketsOfBatch, type Batch } from '../core/batch.js';
import { Bug, OperationalError } from '../core/errors.js';
import { purchaseKey } from '../core/purchase.js';
import { homeBucket } from '../core/sale.js';
import type { BucketRef } from '../core/ports/stock-store.js';
import {
  UNPARK_WORDS,
  type Reacquired,
  type PendingBatch,
  type Release,
  type BatchStore,
  type Unparked,
} from '../core/ports/batch-store.js';
import { guarded, serverNowMs, type RedisClient, type RedisConnection } from './connection.js';
import { bucketKeys } from './keys.js';
import { bodyOf } from './markers.js';
import { asList } from './replies.js';

/** A bounded reply, and far below any reply time-out. */
const REFS_PER_PIPELINE = 500;

type RecordedBatch = Parameters<BatchStore['markRecorded']>[0][number];

/** The ledger after the deduct. */
export function createBatchStore({ redis, run }: RedisConnection): BatchStore {
  return {
    async markRecorded(settled): Promise<void> {
      const replies = await guarded('settle', () => Promise.all(settled.map((one) => markOne(run, one))));
      refuseInRepair('settle', replies);
    },

    reacquire: (batch, epoch, recorded) => claimAtHome({ redis, run }, batch, epoch, recorded),

    async release(releases): Promise<('released' | 'nothing')[]> {
      const words = await guarded('release', async () => {
        const homes = await presentHomes(redis, releases);
        return Promise.all(releases.map((release, index) => releaseOne(run, release, homes[index] ?? null)));
      });
      refuseInRepair('release', words);
      return words.map((word) => {
        if (word !== 'released' && word !== 'nothing') throw new Bug(`release answered the word ${String(word)}`);
        return word;
      });
    },

    stalePending: (ref, olderThanMs, max) =>
      guarded('read pending batches', () => stalePending(redis, ref, olderThanMs, max)),

    withPending: (refs) => guarded('look for pending batches', () => withPending(redis, refs)),

    async pendingSummary(ref): Promise<{ batches: number; oldestMs: number }> {
      const { pending } = bucketKeys(ref);
      const [batches, oldest, nowMs] = await guarded('count pending batches', () =>
        Promise.all([redis.zcard(pending), redis.zrange(pending, '0', '0', 'WITHSCORES'), serverNowMs(redis, pending)]),
      );
      return { batches, oldestMs: oldest[1] === undefined ? 0 : Math.max(0, nowMs - Number(oldest[1])) };
    },

    async overduePending(ref, afterMs): Promise<{ batches: number; oldestMs: number }> {
      const { pending } = bucketKeys(ref);
      return guarded('count late batches', async () => {
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
      await guarded('park', async () => {
        const buckets = bucketsOfBatch(batch, await readTerms(redis, batch));
        const keys = buckets.map((bucket) => bucketKeys({ saleId: batch.saleId, bucket }).pending);
        return Promise.all(keys.map((pending) => redis.zrem(pending, batch.batchId)));
      });
    },

    unpark: (batch) => unparkEverywhere({ redis, run }, batch),
  };
}

/** The batch's own bucket knows whether the sale was scattered since; its requests are elsewhere then. @returns a word */
async function markOne(run: RedisConnection['run'], { batch, orders }: RecordedBatch): Promise<unknown> {
  const [word, , epoch, buckets] = asList(await markIn(run, batch, batch.bucket, orders));
  if (word !== 'settled') return word;
  const others = bucketsOfBatch(batch, { epoch: Number(epoch), buckets: Number(buckets) }).slice(1);
  const replies = await Promise.all(others.map((bucket) => markIn(run, batch, bucket, orders)));
  return replies.map((reply) => asList(reply)[0]).find((other) => other !== 'settled') ?? word;
}

function markIn(
  run: RedisConnection['run'],
  { saleId, batchId }: Batch,
  bucket: number,
  orders: RecordedBatch['orders'],
): Promise<unknown> {
  const { requests, pending, tx, sale } = bucketKeys({ saleId, bucket });
  const pairs = orders.map((order) => [purchaseKey(order), order.orderId]);
  return run('mark-recorded', [requests, pending, tx + batchId, sale], [batchId, JSON.stringify(pairs)]);
}

type Reached = Pick<RedisConnection, 'redis' | 'run'>;

/** Each purchase in the bucket that its buyer is in now; the scripts refuse in any other epoch. */
async function claimAtHome(
  { redis, run }: Reached,
  batch: Batch,
  epoch: number,
  recorded: ReadonlySet<string>,
): Promise<Reacquired> {
  const { buckets, ...terms } = await guarded('read a sale', () => readTerms(redis, batch));
  if (terms.epoch !== 0 && terms.epoch !== epoch) return { outcome: 'shut' }; // it may have others in that one
  const [lost, elsewhere] = [new Set<string>(), new Set<string>()];
  // Its own bucket first: from then on the batch is in `pending`, and whoever dies now is followed by the re-drive.
  for (const bucket of new Set([batch.bucket, ...homesOf(batch, buckets)])) {
    const others = batch.purchases.filter(({ userId }) => buckets > 1 && homeBucket(userId, buckets) !== bucket);
    const skipped = new Set([...recorded, ...others.map(purchaseKey)]);
    const said = await claimIn(run, batch, bucket, epoch, skipped);
    if (said.outcome !== 'claimed') return said;
    for (const key of said.lost) lost.add(key);
    for (const key of said.elsewhere) elsewhere.add(key);
  }
  return { outcome: 'claimed', lost, elsewhere };
}

async function claimIn(
  run: RedisConnection['run'],
  batch: Batch,
  bucket: number,
  epoch: number,
  skipped: ReadonlySet<string>,
): Promise<Reacquired> {
  const { stock, sale, buyers, requests, tx, pending } = bucketKeys({ saleId: batch.saleId, bucket });
  const keys = [stock, sale, buyers, requests, tx + batch.batchId, pending];
  const args = [batch.body, epoch, JSON.stringify([...skipped])];
  return readClaim(asList(await guarded('claim', () => run('reacquire', keys, args))));
}

/** @returns the word of its own bucket, which knows it in any case */
async function unparkEverywhere({ redis, run }: Reached, batch: Batch): Promise<Unparked> {
  const word = await unparkIn(run, batch, batch.bucket);
  if (word !== 'unparked' && word !== 'already_pending') return word;
  const [, ...others] = bucketsOfBatch(batch, await guarded('read a sale', () => readTerms(redis, batch)));
  for (const bucket of others) await unparkIn(run, batch, bucket);
  return word;
}

async function unparkIn(run: RedisConnection['run'], { saleId, batchId }: Batch, bucket: number): Promise<Unparked> {
  const { tx, pending } = bucketKeys({ saleId, bucket });
  const said = await guarded('unpark', () => run('unpark', [tx + batchId, pending], [batchId]));
  const word = UNPARK_WORDS.find((known) => known === said);
  if (word === undefined) throw new Bug(`unpark answered the word ${String(said)}`);
  return word;
}

const homesOf = ({ purchases }: Batch, buckets: number): number[] =>
  buckets > 1 ? purchases.map(({ userId }) => homeBucket(userId, buckets)) : [];

/** Epoch and buckets of a sale as this bucket has them; 0 where it does not say. */
async function readTerms(redis: RedisClient, ref: BucketRef): Promise<{ epoch: number; buckets: number }> {
  const [epoch, buckets] = await redis.hmget(bucketKeys(ref).sale, 'epoch', 'buckets');
  return { epoch: Number(epoch), buckets: Number(buckets) };
}

/**
 * Where the request of each release is now: a sale may have been scattered since the release was promised. Asked for once
 * the row that ended is committed; so whoever scatters the sale before or after that finds the row.
 * @returns per release, in order; null while the books of its sale are being rebuilt
 */
async function presentHomes(redis: RedisClient, releases: readonly Release[]): Promise<(number | null)[]> {
  const saleIds = [...new Set(releases.map(({ saleId }) => saleId))];
  const terms = new Map(
    await Promise.all(
      saleIds.map(async (saleId) => {
        const fields = await redis.hmget(bucketKeys({ saleId, bucket: 0 }).sale, 'state', 'buckets');
        return [saleId, fields] as const;
      }),
    ),
  );
  return releases.map(({ saleId, bucket, userId }) => {
    const [state, buckets] = terms.get(saleId) ?? [];
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

/** A repair takes seconds, and everything that comes after it is safe to repeat. */
function refuseInRepair(what: string, words: readonly unknown[]): void {
  if (!words.includes('repairing')) return;
  throw new OperationalError('redis', `${what}: the books of the sale are being rebuilt`, { retryable: true });
}

const keysIn = (list: unknown): Set<string> => new Set(asList(list).map(String));

function readClaim([word, lost, elsewhere]: readonly unknown[]): Reacquired {
  switch (word) {
    case 'claimed':
      return { outcome: word, lost: keysIn(lost), elsewhere: keysIn(elsewhere) };
    case 'shut':
    case 'not_warmed':
      return { outcome: word };
    default:
      throw new Bug(`claim answered the word ${String(word)}`);
  }
}

async function withPending(redis: RedisClient, refs: readonly BucketRef[]): Promise<BucketRef[]> {
  const found: BucketRef[] = [];
  for (let start = 0; start < refs.length; start += REFS_PER_PIPELINE) {
    const slice = refs.slice(start, start + REFS_PER_PIPELINE);
    const counts = await countPending(redis, slice);
    found.push(...slice.filter((_, index) => (counts[index] ?? 0) > 0));
  }
  return found;
}

/** In a pipeline: one command each would cost the keeper and Redis a system call per sale. */
async function countPending(redis: RedisClient, refs: readonly BucketRef[]): Promise<number[]> {
  const keys = refs.map((ref) => bucketKeys(ref).pending);
  // a pipeline goes to one server, and these lie on all
  if (redis instanceof Cluster) return Promise.all(keys.map((key) => redis.zcard(key)));
  const replies = await redis.pipeline(keys.map((key) => ['zcard', key])).exec();
  return keys.map((_, index) => {
    const [error, count] = replies?.[index] ?? [new Error('the pipeline was cut off')];
    if (error) throw error;
    return Number(count);
  });
}

async function stalePending(
  redis: RedisClient,
  ref: BucketRef,
  olderThanMs: number,
  max: number,
): Promise<PendingBatch[]> {
  const keys = bucketKeys(ref);
  const nowMs = await serverNowMs(redis, keys.pending);
  const found = await redis.zrangebyscore(keys.pending, 0, nowMs - olderThanMs, 'WITHSCORES', 'LIMIT', 0, max);
  const stale: { batchId: string; ageMs: number }[] = [];
  for (let i = 0; i < found.length; i += 2) {
    stale.push({ batchId: found[i] as string, ageMs: nowMs - Number(found[i + 1]) });
  }
  if (stale.length === 0) return [];
  const markers = await redis.mget(stale.map(({ batchId }) => keys.tx + batchId));
  const batches = stale.map((batch, index) => ({ ...batch, body: bodyOf(markers[index] ?? null) }));
  const bodiless = batches.filter(({ body }) => body === null).map(({ batchId }) => batchId);
  if (bodiless.length === 0) return batches;
  // Settled between our two reads, most likely: then it is pending no more.
  const scores = await Promise.all(bodiless.map((batchId) => redis.zscore(keys.pending, batchId)));
  const settled = new Set(bodiless.filter((_, index) => scores[index] === null));
  return batches.filter(({ batchId }) => !settled.has(batchId));
}
