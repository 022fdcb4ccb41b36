import type { MemoryRepositories } from './memory-repositories.js';
import type { MemoryRedis } from './memory-redis.js';
import type { CheckPorts } from '../../invariants/check-sale.js';

/**
 * Adapts the stores in memory for `checkSale`. MemoryRedis sums up the requests of a buyer instead of counting, so the
 * sum and the count always agree.
 */
export function memoryCheckPorts(redis: MemoryRedis, repositories: MemoryRepositories): CheckPorts {
  return {
    store: {
      snapshot: async (ref) => {
        const bucket = redis.bucket(ref);
        if (bucket.sale === null) return null;
        const { unitsLeft, requests, pending } = bucket;
        return {
          unitsLeft,
          requests,
          buyers: bucket.unitsByBuyer(),
          pending: [...pending.keys()],
          transfers: bucket.transfers(),
        };
      },
      transfers: async (ref) => redis.bucket(ref).transfers(),
      pendingCount: async (ref) => redis.bucket(ref).pending.size,
    },
    repository: {
      findSale: async (saleId) => repositories.saleOf(saleId) ?? null,
      async *orders(saleId) {
        yield repositories.allOrders.filter((order) => order.saleId === saleId);
      },
      undoneReleases: async (saleId) =>
        repositories.outbox
          .undone('release')
          .filter(({ payload }) => JSON.stringify(payload).includes(`"saleId":"${saleId}"`)).length,
    },
  };
}
