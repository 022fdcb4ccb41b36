import { expect } from 'chai';
import { MemoryLedger } from '../helpers/memory/memory-ledger.js';
import { batchOf, purchasesOf, saleOf } from '../helpers/sales.js';

/** The simulated histories lose writes of the ledger in memory. That it loses them is shown here. */
describe('simulation: a ledger in memory that comes back', () => {
  const open = async () => {
    const ledger = new MemoryLedger();
    const sale = saleOf({ stock: 5, opensAtMs: 1 });
    await ledger.warm(sale);
    await ledger.gate(sale, 'open');
    const deduct = async (text: string) => {
      const batch = batchOf(sale, purchasesOf(text));
      expect((await ledger.deduct(batch)).outcome).to.equal('deducted');
      return batch;
    };
    return { ledger, sale, deduct, snapshot: () => ledger.bucket({ ...sale, bucket: 0 }).snapshot() };
  };

  it('R2 without its last writes, each lost whole, those of other sales as well', async () => {
    const { ledger, deduct, snapshot, sale } = await open();
    ledger.keepHistory();
    const batch = await deduct('u1');
    const before = snapshot();
    await deduct('u2');
    await ledger.settle([{ batch, orders: [{ userId: 'u1', requestId: 'k1', orderId: '101' }] }]);
    const other = saleOf();
    await ledger.warm(other);
    expect(ledger.restart({ lose: 3 })).to.equal(3);
    expect(snapshot()).to.deep.equal(before);
    expect(await ledger.readSale({ ...other, bucket: 0 })).to.equal(null);
    expect((await ledger.readSale({ ...sale, bucket: 0 }))?.state).to.equal('repair');
    expect(ledger.restart({ lose: 9 }), 'no more than there are').to.equal(1);
    expect(snapshot().requests).to.deep.equal({});
  });

  it('what only looks, or is refused for its marker, is no write', async () => {
    const { ledger, sale, deduct, snapshot } = await open();
    ledger.keepHistory();
    const batch = await deduct('u1');
    await ledger.deduct(batch);
    await ledger.decide(batch);
    await ledger.precheck({ ...sale, bucket: 0 }, batch.purchases);
    ledger.restart({ lose: 1 });
    expect(snapshot()).to.deep.include({ unitsLeft: 5, requests: {}, markers: {} });
  });

  it('R1 with all of them, R5 with none', async () => {
    const { ledger, deduct, snapshot } = await open();
    await deduct('u1');
    const before = snapshot();
    expect(ledger.restart()).to.equal(0);
    expect(snapshot()).to.deep.equal(before);
    ledger.restart({ empty: true });
    expect(snapshot()).to.deep.include({ state: null, unitsLeft: 0, requests: {}, pending: [], markers: {} });
    expect(() => ledger.restart({ lose: 1 }), 'nothing was kept to go back to').to.throw('keepHistory');
  });
});
