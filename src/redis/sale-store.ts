import { type Sale } from '../core/sale.js';
import { unitsOfBucket } from '../core/bucket.js';
import { BucketFaults } from '../core/bucket-faults.js';
import type { CachedSnapshot, SaleSnapshotCache } from '../core/ports/sale-repository.js';
import { asOperationalError, type RedisConnection } from './connection.js';
import { snapshotKey, snapshotLockKey, bucketKeys } from './keys.js';
import { asList } from './replies.js';
import { Bug } from '../core/errors.js';
import { BUCKET_EDITED } from '../core/ports/sale-edits.js';
import type { SetStateOutcome, SaleStore } from '../core/ports/stock-store.js';

export function createSaleStore({ redis, run }: RedisConnection): SaleStore {
  return {
    async warm(sale): Promise<'warmed' | 'already_warm'> {
      let outcome: 'warmed' | 'already_warm' = 'already_warm';
      for (let bucket = 0; bucket < sale.buckets; bucket++) {
        const keys = bucketKeys({ saleId: sale.saleId, bucket });
        const { epoch, opensAtMs, closesAtMs, limitPerBuyer } = sale;
        const args = [unitsOfBucket(sale, bucket), epoch, opensAtMs, closesAtMs, limitPerBuyer, sale.buckets];
        const word = await asOperationalError('warm', () => run('warm', [keys.stock, keys.sale], args));
        if (word === 'warmed') outcome = 'warmed';
        else if (word !== 'already_warm') throw new Bug(`warm returned the unknown word ${String(word)}`);
      }
      return outcome;
    },

    async setState(sale, state): Promise<SetStateOutcome> {
      const faults = new BucketFaults(); // a bucket that does not answer must not prevent the others from opening
      for (let bucket = 0; bucket < sale.buckets; bucket++) {
        const keys = bucketKeys({ saleId: sale.saleId, bucket });
        const set = asOperationalError('set-state', () => run('set-state', [keys.sale], [state]));
        const word = await set.catch((error: unknown) => faults.add(error));
        if (word === undefined) continue;
        if (word === 'not_warmed' || word === 'repairing' || word === 'closed') return word;
        if (word !== 'set') throw new Bug(`set-state returned the unknown word ${String(word)}`);
      }
      faults.throwIfAny();
      return 'set';
    },

    async edit(ref, { editId, epoch, units, closesAtMs, isLast }) {
      const { stock, sale } = bucketKeys(ref);
      const args = [editId, epoch, units, closesAtMs, isLast ? 1 : 0];
      const [reply] = asList(await asOperationalError('edit', () => run('edit', [stock, sale], args)));
      const word = BUCKET_EDITED.find((known) => known === reply);
      if (word === undefined) throw new Bug(`edit returned the unknown word ${String(reply)}`);
      return word;
    },

    async forget({ saleId, buckets }): Promise<void> {
      for (let bucket = 0; bucket < buckets; bucket++) {
        const { tx: _markers, ...keys } = bucketKeys({ saleId, bucket });
        // UNLINK removes a hash of a million fields at once; a background thread frees its memory
        // (docs/decisions/0024).
        await asOperationalError('forget a sale', () => redis.unlink(...Object.values(keys)));
      }
    },
  };
}

/** Means that there is no such sale. A snapshot is a JSON object, so it cannot be confused with this. */
const ABSENT = '-';

/** Reads a snapshot. An api of an earlier version omits `retiredAtMs` or `paymentWindowMs`. */
const readSnapshot = (text: string): Sale =>
  ({ retiredAtMs: null, paymentWindowMs: null, ...(JSON.parse(text) as Partial<Sale>) }) as Sale;

/** A change of the sale replaces its snapshot at once, so this only limits the effect of a lost change. */
export const SNAPSHOT_CACHE_MS = 5000;

/** Caches sale snapshots in Redis, shared by all apis. */
export function createSaleSnapshotCache(
  { redis }: RedisConnection,
  options: { readonly ttlMs: number } = { ttlMs: SNAPSHOT_CACHE_MS },
): SaleSnapshotCache {
  return {
    async read(saleId): Promise<CachedSnapshot> {
      const text = await asOperationalError('read a sale snapshot', () => redis.get(snapshotKey(saleId)));
      if (text === null) return { cached: 'missing' };
      return text === ABSENT ? { cached: 'absent' } : { cached: 'ready', sale: readSnapshot(text) };
    },

    async lock(saleId, holdMs): Promise<boolean> {
      const reply = await asOperationalError('lock a sale snapshot', () =>
        redis.set(snapshotLockKey(saleId), '1', 'PX', holdMs, 'NX'),
      );
      return reply === 'OK';
    },

    async write(saleId, sale): Promise<void> {
      const text = sale === null ? ABSENT : JSON.stringify(sale);
      await asOperationalError('write a sale snapshot', () =>
        Promise.all([redis.set(snapshotKey(saleId), text, 'PX', options.ttlMs), redis.del(snapshotLockKey(saleId))]),
      );
    },

    async forget(saleId): Promise<void> {
      await asOperationalError('forget a sale snapshot', () => redis.del(snapshotKey(saleId)));
    },
  };
}
