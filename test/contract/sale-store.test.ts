import { expect } from 'chai';
import type { Sale } from '../../src/core/sale.js';
import { batchOf, purchasesOf, saleOf } from '../helpers/sales.js';
import { STORE_WORLDS, openSale, type StoreWorld } from './store-worlds.js';
import { WORLD_TIMEOUT_MS } from '../helpers/redis-cluster.js';

for (const [name, createWorld] of STORE_WORLDS) {
  describe(`contract SaleStore on ${name}`, () => {
    let world: StoreWorld;
    before(async function () {
      this.timeout(WORLD_TIMEOUT_MS);
      world = await createWorld();
    });
    after(() => world?.close());

    const freshSale = async (parts: Partial<Sale> = {}): Promise<Sale> => saleOf(parts, await world.nowMs());
    const read = ({ saleId }: Sale, bucket = 0) => world.stock.readSale({ saleId, bucket });

    it('warm loads stock, window, limit and epoch in state `warm`', async () => {
      const sale = await freshSale({ stock: 8, limitPerBuyer: 3, epoch: 5 });
      expect(await world.sales.warm(sale)).to.equal('warmed');
      const { opensAtMs, closesAtMs } = sale;
      expect(await read(sale)).to.include({ state: 'warm', epoch: 5, unitsLeft: 8, opensAtMs, closesAtMs });
    });

    it('warm again, with other numbers, changes nothing: live stock is never overwritten [R5]', async () => {
      const sale = await openSale(world, { stock: 8 });
      await world.stock.deduct(batchOf(sale, purchasesOf('u1')));
      expect(await world.sales.warm({ ...sale, stock: 100, epoch: 9 })).to.equal('already_warm');
      expect(await read(sale)).to.include({ state: 'open', epoch: 1, unitsLeft: 7 });
    });

    it('warm deals the stock out to the buckets, none lost, and completes what was begun', async () => {
      const sale = await freshSale({ stock: 11, buckets: 4 });
      await world.sales.warm({ ...sale, stock: 3, buckets: 1 }); // died after the first of its four buckets
      expect(await world.sales.warm(sale)).to.equal('warmed');
      const units = await Promise.all([0, 1, 2, 3].map(async (bucket) => (await read(sale, bucket))?.unitsLeft));
      expect(units).to.deep.equal([3, 3, 3, 2]);
      expect(await world.sales.warm(sale)).to.equal('already_warm');
    });

    it('setState sets every bucket, as often as asked', async () => {
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

    it('setState answers `not_warmed` when a bucket is not loaded', async () => {
      const sale = await freshSale();
      expect(await world.sales.setState(sale, 'open')).to.equal('not_warmed');
      await world.sales.warm(sale);
      expect(await world.sales.setState({ ...sale, buckets: 2 }, 'open')).to.equal('not_warmed');
    });
  });
}
