import type { MemoryRepositories } from './memory-repositories.js';
import type { MemoryRedis } from './memory-redis.js';
import type { CheckPorts } from '../../invariants/check-sale.js';

/** Both books in memory as an auditor reads them. The ledger keeps no count per buyer, so that one always agrees. */
export function memoryCheckPorts(store: MemoryRedis, books: MemoryRepositories): CheckPorts {
  return {
    store: {
      snapshot: async (ref) => {
        const bucket = store.bucket(ref);
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
      transfers: async (ref) => store.bucket(ref).transfers(),
      pendingCount: async (ref) => store.bucket(ref).pending.size,
    },
    repository: {
      findSale: async (saleId) => books.saleOf(saleId) ?? null,
      async *orders(saleId) {
        yield books.allOrders.filter((order) => order.saleId === saleId);
      },
      undoneReleases: async (saleId) =>
        books.outbox.undone('release').filter(({ payload }) => JSON.stringify(payload).includes(`"saleId":"${saleId}"`))
          .length,
    },
  };
}
