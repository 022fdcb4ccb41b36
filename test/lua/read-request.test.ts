import { expect } from 'chai';
import { ScriptBench, type SaleBench } from './script-runner.js';
import { batchOf, purchasesOf } from '../helpers/sales.js';
import { clashesOf, describeSetting, type Condition } from './precedence.js';
import { saleIn } from './setting.js';

const HELD = 'held:earlier-batch:1';

/** What a bucket has, and whether it can be trusted. */
describe('lua/read-request-2.lua and lua/bucket-status-1.lua', () => {
  let bench: ScriptBench;
  before(async () => {
    bench = await ScriptBench.open();
  });
  after(() => bench?.close());

  const look = ({ keys }: SaleBench, field = 'u1/k1') =>
    bench.connection.run('read-request', [keys.sale, keys.requests], [field, 1]);
  const standing = ({ keys }: SaleBench) => bench.connection.run('bucket-status', [keys.sale], []);

  /** The word is what `look` says of the bucket. */
  const UNCERTAIN: readonly Condition[] = [
    { word: 'missing', setting: { state: 'missing' } },
    { word: 'repair', setting: { state: 'repair' } },
    { word: 'server', setting: { server: 'another' } },
    { word: 'buckets', setting: { buckets: 'another' } },
  ];
  const settings = [...UNCERTAIN, ...clashesOf(UNCERTAIN).map(({ both }) => ({ setting: both }))];
  for (const { setting } of settings) {
    it(`uncertain: ${describeSetting(setting)}; the entry is returned all the same [R1]`, async () => {
      const sale = await saleIn({ ...setting, entry: 1 }, bench, 'b1');
      expect(await look(sale)).to.deep.equal([0, HELD]);
      expect(await look(sale, 'u2/k1')).to.deep.equal([0, '']);
    });
  }

  for (const state of ['warm', 'open', 'paused', 'closed'] as const) {
    it(`certain: a sale that is ${state} on its own server`, async () => {
      const sale = await bench.sale({ epoch: 3 }, state);
      await sale.deduct(batchOf(sale.sale, purchasesOf('u2')));
      expect(await look(sale)).to.deep.equal([1, '']);
      expect(await standing(sale)).to.deep.equal([state, 3, 1]);
      await sale.restart();
      expect(await standing(sale)).to.deep.equal([state, 3, 0]);
    });
  }

  it('a bucket that is not loaded stands nowhere', async () => {
    const sale = await saleIn({ state: 'missing' }, bench, 'b1');
    expect(await standing(sale)).to.deep.equal(['', 0, 0]);
  });
});
