import { expect } from 'chai';
import { MemoryRedis } from '../helpers/memory/memory-redis.js';
import { batchOf, liveOrderOf, purchasesOf, saleOf } from '../helpers/sales.js';

// The simulation relies on a Redis in memory that really loses writes.
describe('simulation: a Redis in memory after a restart', () => {
  const open = async () => {
    const store = new MemoryRedis();
    const sale = saleOf({ stock: 5, opensAtMs: 1 });
    await store.warm(sale);
    await store.setState(sale, 'open');
    const deduct = async (text: string) => {
      const batch = batchOf(sale, purchasesOf(text));
      expect((await store.deduct(batch)).outcome).to.equal('deducted');
      return batch;
    };
    return { store, sale, deduct, snapshot: () => store.bucket({ ...sale, bucket: 0 }).snapshot() };
  };

  it('loses its last writes together, in every sale, when it restarts [R2]', async () => {
    const { store, deduct, snapshot, sale } = await open();
    store.keepHistory();
    const batch = await deduct('u1');
    const before = snapshot();
    await deduct('u2');
    await store.markRecorded([{ batch, orders: [liveOrderOf('u1', '101')] }]);
    const other = saleOf();
    await store.warm(other);
    expect(store.restart({ lose: 3 })).to.equal(3);
    expect(snapshot()).to.deep.equal(before);
    expect(await store.readSale({ ...other, bucket: 0 })).to.equal(null);
    expect((await store.readSale({ ...sale, bucket: 0 }))?.state).to.equal('repair');
    expect(store.restart({ lose: 9 }), 'no more than were made').to.equal(1);
    expect(snapshot().requests).to.deep.equal({});
  });

  it('loses no call that only reads or that is refused because of its marker', async () => {
    const { store, sale, deduct, snapshot } = await open();
    store.keepHistory();
    const batch = await deduct('u1');
    await store.deduct(batch);
    await store.resolve(batch);
    await store.precheck({ ...sale, bucket: 0 }, batch.purchases);
    store.restart({ lose: 1 });
    expect(snapshot()).to.deep.include({ unitsLeft: 5, requests: {}, markers: {} });
  });

  it('keeps all its data or none when it restarts [R1]', async () => {
    const { store, deduct, snapshot } = await open();
    await deduct('u1');
    const before = snapshot();
    expect(store.restart()).to.equal(0);
    expect(snapshot()).to.deep.equal(before);
    store.restart({ empty: true });
    expect(snapshot()).to.deep.include({ state: null, unitsLeft: 0, requests: {}, pending: [], markers: {} });
    expect(() => store.restart({ lose: 1 }), 'there is no history to go back to').to.throw('keepHistory');
  });
});
