import type { BucketRef, BucketTransfers } from '../../src/core/bucket.js';
import { parseRequestEntry, type RequestEntry } from '../../src/core/outcome.js';
import { asOperationalError, serverNowMs, type RedisConnection } from '../../src/redis/connection.js';
import { bucketKeys } from '../../src/redis/keys.js';
import { parseTransfers } from '../../src/redis/transfer-store.js';
import { scanHash } from '../../src/redis/scan-hash.js';

export function createBucketAudit({ redis }: RedisConnection): BucketAudit {
  return {
    async snapshot(ref): Promise<BucketSnapshot | null> {
      const keys = bucketKeys(ref);
      return asOperationalError('audit a bucket', async () => {
        const stock = await redis.get(keys.stock);
        if (stock === null) return null;
        const requests = new Map<string, RequestEntry>();
        for await (const [key, text] of scanHash(redis, keys.requests)) {
          const entry = parseRequestEntry(text);
          if (entry !== null) requests.set(key, entry);
        }
        const buyers = new Map<string, number>();
        for await (const [user, units] of scanHash(redis, keys.buyers)) buyers.set(user, Number(units));
        const pending = await redis.zrange(keys.pending, '0', '-1');
        const transfers = parseTransfers(await redis.hgetall(keys.transfers), await serverNowMs(redis, keys.transfers));
        return { unitsLeft: Number(stock), requests, buyers, pending, transfers };
      });
    },

    transfers: (ref) =>
      asOperationalError('read transfers', async () => {
        const { transfers } = bucketKeys(ref);
        return parseTransfers(await redis.hgetall(transfers), await serverNowMs(redis, transfers));
      }),
    pendingCount: (ref) => asOperationalError('count pending batches', () => redis.zcard(bucketKeys(ref).pending)),
  };
}

/** All that Redis knows about one bucket. Each part is read separately, so compare only at rest. */
export interface BucketSnapshot {
  readonly unitsLeft: number;
  /** `userId/requestId` → entry. */
  readonly requests: ReadonlyMap<string, RequestEntry>;
  /** userId → units held or ordered. */
  readonly buyers: ReadonlyMap<string, number>;
  /** Ids of batches that are deducted and not marked recorded. */
  readonly pending: readonly string[];
  /** Transfers to and from other buckets. */
  readonly transfers: BucketTransfers;
}

/** Reads the buckets in Redis completely, to check the invariants. */
export interface BucketAudit {
  /** @returns null if the bucket is not loaded @throws OperationalError redis */
  snapshot(ref: BucketRef): Promise<BucketSnapshot | null>;
  /** Batches that are deducted and not marked recorded. @throws OperationalError redis */
  pendingCount(ref: BucketRef): Promise<number>;
  /** Transfers to and from other buckets. @throws OperationalError redis */
  transfers(ref: BucketRef): Promise<BucketTransfers>;
}
