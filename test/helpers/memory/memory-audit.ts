import type { MemoryBooks } from './memory-books.js';
import type { MemoryLedger } from './memory-ledger.js';
import type { CheckPorts } from '../../invariants/check-sale.js';

/** Both books in memory as an auditor reads them. The ledger keeps no count per buyer, so that one always agrees. */
export function memoryAudit(ledger: MemoryLedger, books: MemoryBooks): CheckPorts {
  return {
    ledger: {
      snapshot: async (ref) => {
        const bucket = ledger.bucket(ref);
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
      transfers: async (ref) => ledger.bucket(ref).transfers(),
      pendingCount: async (ref) => ledger.bucket(ref).pending.size,
    },
    book: {
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
