import { expect } from 'chai';
import { OperationalError } from '../../../src/core/errors.js';
import type { Order } from '../../../src/core/order.js';
import type { Purchase } from '../../../src/core/purchase.js';
import { ClosedRows } from '../../../src/purchase/closed-rows.js';
import { ManualClock } from '../../helpers/memory/manual-clock.js';
import { partial } from '../../helpers/partial.js';

const purchaseOf = (userId: string): Purchase => ({ userId, requestId: 'k1', quantity: 1 });
const rowOf = (saleId: string, userId: string): Order => ({
  orderId: `1${userId.slice(3)}`,
  userId,
  saleId,
  requestId: 'k1',
  batchId: 'b1',
  quantity: 1,
  amountCents: 1,
  state: 'paid',
  reason: null,
  createdAtMs: 1,
  expiresAtMs: 2,
  paidAtMs: 1,
  refundedCents: 0,
});

describe('closed-rows', () => {
  let clock: ManualClock;
  let queries: { readonly saleId: string; readonly users: readonly string[]; readonly atMs: number }[];
  let fault: Error | null;
  let rows: ClosedRows;

  beforeEach(() => {
    clock = new ManualClock();
    [queries, fault] = [[], null];
    const findByPurchases = async (saleId: string, purchases: readonly Purchase[]) => {
      queries.push({ saleId, users: purchases.map(({ userId }) => userId), atMs: clock.monotonicMs() });
      if (fault !== null) throw fault;
      const found = purchases.filter(({ userId }) => userId.startsWith('won'));
      return found.map(({ userId }) => rowOf(saleId, userId));
    };
    rows = new ClosedRows(partial({ findByPurchases }), clock);
  });

  it('returns the row of its own purchase, or null, to each caller', async () => {
    const asked = ['won1', 'late', 'won2'].map((userId) => rows.find('7', purchaseOf(userId)));
    const other = rows.find('8', purchaseOf('won1'));
    const found = (await Promise.all(asked)).map((row) => (typeof row === 'string' ? row : (row?.orderId ?? null)));
    expect(found).to.deep.equal(['11', null, '12']);
    expect(await other).to.include({ saleId: '8', orderId: '11' });
  });

  it('sends MySQL one limited query per 50 ms, and answers `overloaded` to the excess', async () => {
    const asked = Array.from({ length: 6000 }, (_, n) => rows.find('7', purchaseOf(`u${n}`)));
    const answers = await Promise.all(asked);
    // the first query had already begun
    expect(answers.filter((answer) => answer === 'overloaded')).to.have.length(999);
    expect(queries).to.have.length(11);
    for (const [index, { users, atMs }] of queries.entries()) {
      expect(users).to.have.length.at.most(500);
      expect(atMs - (queries[index - 1]?.atMs ?? -Infinity)).to.be.at.least(50);
    }
    expect(await rows.find('7', purchaseOf('next')), 'there is room again').to.equal(null);
  });

  it('serves sales in turn, so that a storm on one sale delays no other sale', async () => {
    const storm = Array.from({ length: 3000 }, (_, n) => rows.find('7', purchaseOf(`u${n}`)));
    await rows.find('8', purchaseOf('won1'));
    expect(queries.filter(({ saleId }) => saleId === '7')).to.have.length.at.most(2);
    await Promise.all(storm);
  });

  it('rejects for every waiting caller on a fault, and does not remember the fault', async () => {
    fault = new OperationalError('mysql', 'away', { retryable: true });
    const asked = ['a', 'a', 'b'].map((userId) => rows.find('7', purchaseOf(userId)));
    const ends = await Promise.allSettled(asked);
    expect(ends.map(({ status }) => status)).to.deep.equal(['rejected', 'rejected', 'rejected']);
    fault = null;
    expect(await rows.find('7', purchaseOf('a'))).to.equal(null);
  });
});
