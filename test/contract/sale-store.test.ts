import { expect } from 'chai';
import type { Sale } from '../../src/core/sale.js';
import { batchOf, liveOrderOf, purchasesOf, saleOf, releaseOf } from '../helpers/sales.js';
import { STORE_WORLDS, openSale, type StoreWorld } from './store-worlds.js';
import { onEachWorld } from './on-each-world.js';

onEachWorld<StoreWorld>('contract SaleStore', STORE_WORLDS, (world) => {
  const freshSale = async (parts: Partial<Sale> = {}): Promise<Sale> => saleOf(parts, await world.nowMs());
  const read = ({ saleId }: Sale, bucket = 0) => world.stock.readSale({ saleId, bucket });

  it('warm: loads stock, window, limit and epoch in state `warm`', async () => {
    const sale = await freshSale({ stock: 8, limitPerBuyer: 3, epoch: 5 });
    expect(await world.sales.warm(sale)).to.equal('warmed');
    const { opensAtMs, closesAtMs } = sale;
    expect(await read(sale)).to.include({ state: 'warm', epoch: 5, unitsLeft: 8, opensAtMs, closesAtMs });
  });

  it('warm: changes nothing when repeated with other numbers, and never overwrites live stock [R5]', async () => {
    const sale = await openSale(world, { stock: 8 });
    await world.stock.deduct(batchOf(sale, purchasesOf('u1')));
    expect(await world.sales.warm({ ...sale, stock: 100, epoch: 9 })).to.equal('already_warm');
    expect(await read(sale)).to.include({ state: 'open', epoch: 1, unitsLeft: 7 });
  });

  it('warm: divides the whole stock among the buckets, and completes an interrupted run', async () => {
    const sale = await freshSale({ stock: 11, buckets: 4 });
    await world.sales.warm({ ...sale, stock: 3, buckets: 1 }); // The first run died after the first of four buckets.
    expect(await world.sales.warm(sale)).to.equal('warmed');
    const units = await Promise.all([0, 1, 2, 3].map(async (bucket) => (await read(sale, bucket))?.unitsLeft));
    expect(units).to.deep.equal([3, 3, 3, 2]);
    expect(await world.sales.warm(sale)).to.equal('already_warm');
  });

  it('forget: removes every bucket, and can be repeated', async () => {
    const sale = await openSale(world, { stock: 8, buckets: 2 });
    await world.stock.deduct(batchOf(sale, purchasesOf('u1')));
    for (let time = 0; time < 2; time++) {
      await world.sales.forget(sale);
      for (const bucket of [0, 1]) expect(await read(sale, bucket)).to.equal(null);
      expect(await world.stock.acceptedBuyerCount({ saleId: sale.saleId, bucket: 0 })).to.equal(0);
      expect(await world.batches.pendingSummary({ saleId: sale.saleId, bucket: 0 })).to.include({ batches: 0 });
    }
    expect(await world.sales.warm(sale), 'as if it had never been there').to.equal('warmed');
  });

  it('answers late calls for a forgotten sale and restores none of it [M9, C6, R10]', async () => {
    const sale = await openSale(world);
    const first = { saleId: sale.saleId, bucket: 0 };
    const recorded = batchOf(sale, purchasesOf('u1'));
    await world.stock.deduct(recorded);
    const orders = [liveOrderOf('u1', '101')];
    await world.batches.markRecorded([{ batch: recorded, orders }]);
    await world.sales.forget(sale);

    const late = batchOf(sale, purchasesOf('u2'));
    const request = releaseOf(first, 'u1', '101');
    expect(await world.stock.deduct(late)).to.deep.equal({ outcome: 'not_warmed' });
    expect(await world.stock.deduct(recorded)).to.deep.equal({ outcome: 'already_deducted' });
    expect(await world.stock.resolve(late)).to.equal('no_answer');
    expect(await world.stock.resolve(recorded), 'its marker ends by itself').to.equal('deducted');
    await world.batches.markRecorded([
      { batch: recorded, orders },
      { batch: late, orders: [] },
    ]);
    expect(await world.batches.release([request])).to.deep.equal(['nothing']);
    expect(await world.batches.reacquire(late, 2, new Set())).to.deep.equal({ outcome: 'not_warmed' });
    expect(await world.batches.unpark(late)).to.equal('unknown');
    await world.batches.park(late);
    expect(await world.sales.setState(sale, 'closed')).to.equal('not_warmed');
    expect((await world.stock.precheck(first, purchasesOf('u2'))).answers).to.deep.equal([{ outcome: 'loading' }]);

    expect(await read(sale)).to.equal(null);
    expect(await world.repair.statusOf([first])).to.deep.equal([{ state: null, epoch: 0, sameServer: false }]);
    expect(await world.stock.acceptedBuyerCount(first)).to.equal(0);
    expect(await world.reconcile.units(first, 0)).to.equal(null);
  });

  it('setState: sets every bucket, and can be repeated', async () => {
    const sale = await freshSale({ buckets: 3 });
    await world.sales.warm(sale);
    for (const state of ['warm', 'open', 'open', 'paused', 'open', 'closed', 'closed'] as const) {
      expect(await world.sales.setState(sale, state)).to.equal('set');
      const states = await Promise.all([0, 1, 2].map(async (bucket) => (await read(sale, bucket))?.state));
      expect(states).to.deep.equal([state, state, state]);
    }
    expect(await world.sales.setState(sale, 'open'), 'over for good').to.equal('closed');
    expect((await read(sale, 0))?.state).to.equal('closed');
  });

  it('setState: returns `not_warmed` when a bucket is not loaded', async () => {
    const sale = await freshSale();
    expect(await world.sales.setState(sale, 'open')).to.equal('not_warmed');
    await world.sales.warm(sale);
    expect(await world.sales.setState({ ...sale, buckets: 2 }, 'open')).to.equal('not_warmed');
  });
});
