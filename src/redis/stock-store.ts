import { logFieldsOf, type Batch } from '../core/batch.js';
import { assert, Bug } from '../core/errors.js';
import { parseRequestEntry } from '../core/outcome.js';
import { type Purchase, purchaseKey } from '../core/purchase.js';
import { OutageLog } from '../core/outage-log.js';
import type { Log } from '../core/ports/log.js';
import type { BucketStatus } from '../core/ports/repair-stores.js';
import type {
  ResolveVerdict,
  DeductVerdict,
  StoredSale,
  PrecheckVerdict,
  FoundRequest,
  StockStore,
} from '../core/ports/stock-store.js';
import type { AskedBucket, BucketRef } from '../core/bucket.js';
import { asOperationalError, redisFault, serverNowMs, type RedisClient, type RedisConnection } from './connection.js';
import { bucketKeys, type BucketKeys } from './keys.js';
import { asList, readAnswers } from './replies.js';
import { createRepairAsks } from './repair-asks.js';
import { readBucketStatus } from './repair-store.js';

/** Number of fields per step when the buyers of a sale are read. Small enough not to hold up Redis. */
const SCAN_COUNT = 1000;

/** Long, because batches on other Redis servers succeed while one server is down. */
const CALM_MS = 10_000;

export function createStockStore(connection: RedisConnection, log: Log): StockStore {
  const { redis, run, markerLifeMs } = connection;
  const { askForRepair } = createRepairAsks(connection.redis);
  const keysOf = keyCache();
  const outageOf = (begins: string, ends: string): OutageLog => new OutageLog(log, { begins, ends }, {}, CALM_MS);
  const deductOutage = outageOf('deduct gave no valid answer', 'deduct gives valid answers again');
  const resolveOutage = outageOf('no reply to resolve', 'resolve gets replies again');
  return {
    askForRepair,

    async precheck(ref, purchases): Promise<PrecheckVerdict> {
      const keys = keysOf(ref);
      const list = asList(
        await asOperationalError('precheck', () =>
          run(
            'precheck',
            [keys.stock, keys.sale, keys.buyers, keys.requests],
            [encodePurchases(purchases), ref.buckets ?? ''],
          ),
        ),
      );
      const unitsLeft = Number(list[1]);
      return {
        epoch: Number(list[0]),
        unitsLeft: unitsLeft < 0 ? null : unitsLeft,
        buckets: Number(list[2]) || null,
        answers: readAnswers(list, 3, purchases.length),
      };
    },

    async deduct(batch): Promise<DeductVerdict> {
      const { stock, sale, buyers, requests, tx, pending } = keysOf(batch);
      try {
        const keys = [stock, sale, buyers, requests, tx + batch.batchId, pending];
        const verdict = readDeduct(asList(await run('deduct', keys, [batch.body, markerLifeMs])), batch);
        deductOutage.end();
        return verdict;
      } catch (err) {
        if (err instanceof Bug) throw err;
        const error = redisFault('deduct', err);
        if (!error.retryable) return { outcome: 'errored', error };
        // Redis gave no reply, or is full (OOM) or read-only. A full or read-only Redis wrote nothing, but counts as a
        // lost reply: `resolve` finds no marker and cannot write one, so the batch stays undecided until Redis takes
        // writes.
        deductOutage.failed(err, logFieldsOf(batch));
        return { outcome: 'outcome_unknown' };
      }
    },

    async resolve(ref): Promise<ResolveVerdict> {
      const keys = keysOf(ref);
      try {
        const reply = await run('resolve', [keys.tx + ref.batchId, keys.sale], [ref.epoch, markerLifeMs]);
        const verdict = readResolved(reply);
        resolveOutage.end();
        if (verdict === 'no_answer') await askForRepair(ref.saleId);
        return verdict;
      } catch (err) {
        if (err instanceof Bug) throw err;
        resolveOutage.failed(err, logFieldsOf(ref));
        return 'outcome_unknown';
      }
    },

    async findRequest(ref, userId, requestId): Promise<FoundRequest> {
      const { sale, requests } = keysOf(ref);
      const args = [purchaseKey({ userId, requestId }), ref.buckets ?? ''];
      const [certain, entry] = asList(
        await asOperationalError('read a request', () => run('read-request', [sale, requests], args)),
      );
      return certain === 1 ? parseRequestEntry(String(entry)) : 'unsure';
    },

    acceptedBuyerCount: (ref) => asOperationalError('count buyers', () => redis.hlen(keysOf(ref).buyers)),
    acceptedBuyers: (ref) => scanKeys(redis, keysOf(ref).buyers),
    readSale: (ref) =>
      asOperationalError('read a sale', () => readSale(redis, keysOf(ref), ref, () => readBucketStatus(run, ref))),
  };
}

const encodePurchases = (purchases: readonly Purchase[]): string =>
  JSON.stringify(purchases.map((purchase) => [purchase.userId, purchase.requestId, purchase.quantity]));

function readDeduct(list: readonly unknown[], batch: Batch): DeductVerdict {
  const word = list[0];
  switch (word) {
    case 'deducted':
      assert(Number(list[1]) >= 0, `deduct left ${String(list[1])} units`);
      return { outcome: word };
    case 'already_deducted':
    case 'aborted':
    case 'claimed':
    case 'not_warmed':
    case 'stale_epoch':
      return { outcome: word };
    case 'refused':
      return { outcome: 'refused', answers: readAnswers(list, 1, batch.purchases.length) };
    default:
      throw new Bug(`deduct returned the unknown word ${String(word)}`);
  }
}

function readResolved(word: unknown): ResolveVerdict {
  switch (word) {
    case 'deducted':
    case 'aborted':
    case 'claimed':
    case 'outlived':
    case 'no_answer':
      return word;
    default:
      throw new Bug(`resolve returned the unknown word ${String(word)}`);
  }
}

async function* scanKeys(redis: RedisClient, key: string): AsyncGenerator<string[]> {
  let cursor = '0';
  do {
    const [next, pairs] = await asOperationalError('read buyers', () => redis.hscan(key, cursor, 'COUNT', SCAN_COUNT));
    cursor = next;
    yield pairs.filter((_, index) => index % 2 === 0);
  } while (cursor !== '0');
}

async function readSale(
  redis: RedisClient,
  keys: BucketKeys,
  asked: AskedBucket,
  readStatus: () => Promise<BucketStatus>,
): Promise<StoredSale | null> {
  const window = redis.hmget(keys.sale, 'opens_at', 'closes_at', 'buckets');
  const [{ state, epoch, sameServer }, [opensAt, closesAt, buckets], stock, nowMs] = await Promise.all([
    readStatus(),
    window,
    redis.get(keys.stock),
    serverNowMs(redis, keys.sale),
  ]);
  if (state === null || epoch === 0 || stock === null) return null; // epoch 0: the sale was lost, and a repair has begun
  if (asked.buckets !== undefined && buckets && Number(buckets) !== asked.buckets) return null;
  return {
    state: sameServer ? state : 'repair', // no purchase is accepted there until the bucket is repaired
    epoch,
    unitsLeft: Number(stock),
    opensAtMs: Number(opensAt),
    closesAtMs: Number(closesAt),
    nowMs,
  };
}

/** A process sells few sales at a time, and building names on the hot path takes time. */
function keyCache(): (ref: BucketRef) => BucketKeys {
  const CACHE_MAX = 1000;
  const cache = new Map<string, BucketKeys>();
  return (ref) => {
    const name = `${ref.saleId}:${ref.bucket}`;
    let keys = cache.get(name);
    if (!keys) {
      if (cache.size >= CACHE_MAX) cache.clear();
      keys = bucketKeys(ref);
      cache.set(name, keys);
    }
    return keys;
  };
}
