import { expect } from 'chai';
import { insertOrders } from '../../../src/mysql/insert-orders.js';
import type { Transaction } from '../../../src/mysql/pool.js';
import { batchOf, freshSaleId, purchasesOf } from '../../helpers/sales.js';

describe('insert orders', () => {
  const sale = { saleId: freshSaleId(), epoch: 1, buckets: 1 };
  const batch = batchOf(sale, purchasesOf('ann', 'bob'));
  const terms = { saleId: sale.saleId, epoch: 1, priceCents: 1999, limitPerBuyer: 1, paymentWindowMs: null };
  const plan = {
    terms: new Map([[sale.saleId, terms]]),
    orders: batch.purchases.map((purchase, index) => ({ orderId: `${index + 1}`, batch, purchase, failure: null })),
    releases: [],
    oneByOne: new Set<string>(),
    paymentWindowMs: 60_000,
  };
  const writing = (affectedRows: number): Transaction =>
    ({
      execute: (sql: string) => Promise.resolve({ affectedRows: sql.startsWith('INSERT') ? affectedRows : 0 }),
    }) as never;

  it('throws if MySQL writes fewer rows than there are purchases', async () => {
    await insertOrders(writing(2), plan.orders, plan as never);
    const thrown = await insertOrders(writing(1), plan.orders, plan as never).catch((error: Error) => error.message);
    expect(thrown).to.equal('1 rows were written for 2 purchases');
  });
});
