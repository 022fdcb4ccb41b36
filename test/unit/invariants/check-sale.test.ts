import { expect } from 'chai';
import { checkSale, NO_TRANSFERS } from '../../invariants/check-sale.js';
import { saleOf } from '../../helpers/sales.js';

describe('check-sale', () => {
  it('checks again when an order is written while it reads [R1]', async () => {
    const sale = saleOf({ stock: 10, buckets: 1 });
    let sold = 0;
    const order = {
      orderId: '1',
      userId: 'ann',
      requestId: 'k1',
      batchId: 'b',
      quantity: 1,
      state: 'pending_payment',
      reason: null,
      paidAtMs: null,
    } as const;
    const { findings } = await checkSale(sale.saleId, {
      store: {
        snapshot: () =>
          Promise.resolve({
            unitsLeft: 10 - sold,
            requests: new Map(sold === 0 ? [] : [['ann/k1', { state: 'ordered', quantity: 1, orderId: '1' } as const]]),
            buyers: new Map(sold === 0 ? [] : [['ann', 1]]),
            pending: [],
            transfers: NO_TRANSFERS,
          }),
        transfers: () => Promise.resolve(NO_TRANSFERS),
        pendingCount: () => Promise.resolve(0),
      },
      repository: {
        findSale: () => Promise.resolve({ ...sale, sold }),
        async *orders() {
          sold = await Promise.resolve(1); // after Redis and the count of sold units were read
          yield [order];
        },
        undoneReleases: () => Promise.resolve(0),
      },
    });
    expect(findings).to.deep.equal([]);
  });
});
