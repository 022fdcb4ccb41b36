import { Cluster } from 'ioredis';
import { Bug, OperationalError } from '../domain/errors.js';
import { purchaseKey } from '../domain/purchase.js';
import type { BucketRef } from '../ports/stock-ledger.js';
import {
  UNPARK_WORDS,
  type Claimed,
  type PendingBatch,
  type Release,
  type SettlementLedger,
  type Unparked,
} from '../ports/settlement-ledger.js';
import { guarded, serverNowMs, type RedisClient, type RedisConnection } from './connection.js';
import { bucketKeys } from './keys.js';
import { asList } from './replies.js';

/** A bounded reply, and far below any reply time-out. */
const REFS_PER_PIPELINE = 500;

type SettledBatch = Parameters<SettlementLedger['settle']>[0][number];

/** The ledger after the deduct. */
export function createSettlementLedger({ redis, run }: RedisConnection): SettlementLedger {
  return {
    async settle(settled): Promise<void> {
      const replies = await guarded('settle', () => Promise.all(settled.map((one) => settleOne(run, one))));
      refuseInRepair('settle', replies);
    },

    async claim(batch, epoch, recorded): Promise<Claimed> {
      const { stock, sale, buyers, requests, tx, pending } = bucketKeys(batch);
      const keys = [stock, sale, buyers, requests, tx + batch.batchId, pending];
      const args = [batch.body, epoch, JSON.stringify([...recorded])];
      return readClaim(asList(await guarded('claim', () => run('claim', keys, args))));
    },

    async release(releases): Promise<('released' | 'nothing')[]> {
      const words = await guarded('release', () => Promise.all(releases.map((release) => releaseOne(run, release))));
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

    async latePending(ref, afterMs): Promise<{ batches: number; oldestMs: number }> {
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
      await guarded('park', () => redis.zrem(bucketKeys(batch).pending, batch.batchId));
    },

    async unpark(batch): Promise<Unparked> {
      const { tx, pending } = bucketKeys(batch);
      const said = await guarded('unpark', () => run('unpark', [tx + batch.batchId, pending], [batch.batchId]));
      const word = UNPARK_WORDS.find((known) => known === said);
      if (word === undefined) throw new Bug(`unpark answered the word ${String(said)}`);
      return word;
    },
  };
}

/** @returns how many requests moved, or `repairing` */
function settleOne(run: RedisConnection['run'], { batch, orders }: SettledBatch): Promise<unknown> {
  const { requests, pending, tx, sale } = bucketKeys(batch);
  const pairs = orders.map((order) => [purchaseKey(order), order.orderId]);
  return run('settle', [requests, pending, tx + batch.batchId, sale], [batch.batchId, JSON.stringify(pairs)]);
}

async function releaseOne(run: RedisConnection['run'], release: Release): Promise<unknown> {
  const keys = bucketKeys(release);
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

function readClaim([word, ...lost]: readonly unknown[]): Claimed {
  switch (word) {
    case 'claimed':
      return { outcome: word, lost: new Set(lost.map(String)) };
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

/** A marker is its kind, followed by the batch until it is settled. */
function bodyOf(marker: string | null): string | null {
  const start = marker?.indexOf('{') ?? -1;
  return marker === null || start < 0 ? null : marker.slice(start);
}
