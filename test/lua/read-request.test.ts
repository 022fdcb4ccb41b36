import { expect } from 'chai';
import { ScriptRunner, type SaleScripts } from './script-runner.js';
import { batchOf, purchasesOf } from '../helpers/sales.js';
import { saleIn, clashesOf, describeSetting, type Condition } from './precedence.js';

const HELD = 'held:earlier-batch:1';

describe('lua/read-request-2.lua and lua/bucket-status-1.lua', () => {
  const runner = ScriptRunner.inSuite();

  const read = ({ keys }: SaleScripts, field = 'u1/k1') =>
    runner.connection.run('read-request', [keys.sale, keys.requests], [field, 1]);
  const status = ({ keys }: SaleScripts) => runner.connection.run('bucket-status', [keys.sale], []);

  const UNCERTAIN: readonly Condition[] = [
    { word: 'missing', setting: { state: 'missing' } },
    { word: 'repair', setting: { state: 'repair' } },
    { word: 'server', setting: { server: 'another' } },
    { word: 'buckets', setting: { buckets: 'another' } },
  ];
  const settings = [...UNCERTAIN, ...clashesOf(UNCERTAIN).map(({ both }) => ({ setting: both }))];
  for (const { setting } of settings) {
    it(`calls the entry uncertain: ${describeSetting(setting)} [R1]`, async () => {
      const sale = await saleIn({ ...setting, entry: 1 }, runner, 'b1');
      expect(await read(sale)).to.deep.equal([0, HELD]);
      expect(await read(sale, 'u2/k1')).to.deep.equal([0, '']);
    });
  }

  for (const state of ['warm', 'open', 'paused', 'closed'] as const) {
    it(`calls the entry certain for a sale that is ${state} on its own server`, async () => {
      const sale = await runner.sale({ epoch: 3 }, state);
      await sale.deduct(batchOf(sale.sale, purchasesOf('u2')));
      expect(await read(sale)).to.deep.equal([1, '']);
      expect(await status(sale)).to.deep.equal([state, 3, 1]);
      await sale.restart();
      expect(await status(sale)).to.deep.equal([state, 3, 0]);
    });
  }

  it('returns no status for a bucket that is not loaded', async () => {
    const sale = await saleIn({ state: 'missing' }, runner, 'b1');
    expect(await status(sale)).to.deep.equal(['', 0, 0]);
  });
});
