import type { Sale } from '../core/sale.js';
import type { CachedSnapshot, SaleSnapshotCache } from '../core/ports/sale-snapshot-cache.js';
import { asOperationalError, type RedisConnection } from './connection.js';
import { snapshotKey, snapshotLockKey } from './keys.js';

/** Stands for "there is no such sale"; a card is a JSON object, so it cannot be taken for one. */
const ABSENT = '-';

/** Sale cards in Redis, shared by every api process. */
export function createSaleSnapshotCache(
  { redis }: RedisConnection,
  options: { readonly ttlMs: number },
): SaleSnapshotCache {
  return {
    async read(saleId): Promise<CachedSnapshot> {
      const text = await asOperationalError('read a sale card', () => redis.get(snapshotKey(saleId)));
      if (text === null) return { cached: 'missing' };
      return text === ABSENT ? { cached: 'absent' } : { cached: 'ready', sale: JSON.parse(text) as Sale };
    },

    async lock(saleId, holdMs): Promise<boolean> {
      const reply = await asOperationalError('lock a sale card', () =>
        redis.set(snapshotLockKey(saleId), '1', 'PX', holdMs, 'NX'),
      );
      return reply === 'OK';
    },

    async write(saleId, sale): Promise<void> {
      const text = sale === null ? ABSENT : JSON.stringify(sale);
      await asOperationalError('write a sale card', () =>
        Promise.all([redis.set(snapshotKey(saleId), text, 'PX', options.ttlMs), redis.del(snapshotLockKey(saleId))]),
      );
    },

    async forget(saleId): Promise<void> {
      await asOperationalError('forget a sale card', () => redis.del(snapshotKey(saleId)));
    },
  };
}
