import { expect } from 'chai';
import type { StoredSaleState } from '../../src/core/sale.js';
import { ScriptRunner, type SaleScripts } from './script-runner.js';

describe('lua/adjust-2.lua', () => {
  const runner = ScriptRunner.inSuite();

  const adjust = ({ keys }: SaleScripts, read: number, wanted: number, epoch = 1): Promise<unknown> =>
    runner.connection.run('adjust', [keys.stock, keys.sale], [read, wanted, epoch]);

  for (const state of ['warm', 'paused', 'closed'] satisfies StoredSaleState[]) {
    it(`sets only the units left of a sale that is ${state} [C5]`, async () => {
      const sale = await runner.sale({ stock: 10 }, state);
      const before = await sale.snapshot();
      expect(await adjust(sale, 10, 12)).to.equal('adjusted');
      expect(await sale.snapshot()).to.deep.equal({ ...before, unitsLeft: 12 });
      expect(await adjust(sale, 12, 0)).to.equal('adjusted');
      expect((await sale.snapshot()).unitsLeft).to.equal(0);
    });
  }

  for (const state of ['open', 'repair'] satisfies StoredSaleState[]) {
    it(`refuses to adjust a sale that is ${state}, even if its stock is unchanged [C5]`, async () => {
      const sale = await runner.sale({ stock: 10 }, state);
      expect(await adjust(sale, 10, 12)).to.equal('selling');
      expect(await adjust(sale, 9, 12)).to.equal('selling');
      expect((await sale.snapshot()).unitsLeft).to.equal(10);
    });
  }

  it('returns `selling` if the bucket was loaded on another server and waits for its repair [R1]', async () => {
    const sale = await runner.sale({ stock: 10 }, 'closed');
    await sale.restart();
    expect(await adjust(sale, 10, 12)).to.equal('selling');
    expect((await sale.snapshot()).unitsLeft).to.equal(10);
  });

  it('returns `not_warmed` and creates nothing if the stock or the sale is missing', async () => {
    const sale = await runner.sale({ stock: 10 }, 'closed');
    await sale.redis.del(sale.keys.stock);
    expect(await adjust(sale, 0, 12)).to.equal('not_warmed');
    expect(await sale.redis.exists(sale.keys.stock)).to.equal(0);
    await sale.redis.set(sale.keys.stock, '10');
    await sale.redis.del(sale.keys.sale);
    expect(await adjust(sale, 10, 12)).to.equal('not_warmed');
    expect(await sale.redis.get(sale.keys.stock)).to.equal('10');
  });
});
