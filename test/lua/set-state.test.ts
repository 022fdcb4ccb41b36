import { expect } from 'chai';
import { bucketKeys } from '../../src/redis/keys.js';
import { SaleScripts, ScriptRunner } from './script-runner.js';
import { freshSaleId, saleOf } from '../helpers/sales.js';

describe('lua/set-state-1.lua', () => {
  let runner: ScriptRunner;
  before(async () => {
    runner = await ScriptRunner.open();
  });
  after(() => runner?.close());

  it('returns not_warmed and creates nothing when the bucket is not loaded', async () => {
    const sale = new SaleScripts(runner, saleOf());
    expect(await sale.setState('open')).to.equal('not_warmed');
    expect(await sale.redis.exists(sale.keys.sale)).to.equal(0);
  });

  it('returns repairing unless the repair itself opens a sale that is rebuilt [R10]', async () => {
    const sale = await runner.sale({}, 'repair');
    for (const state of ['open', 'paused', 'closed', 'warm']) expect(await sale.setState(state)).to.equal('repairing');
    expect((await sale.snapshot()).state).to.equal('repair');
  });

  it('returns set and changes only the state', async () => {
    const sale = await runner.sale();
    const before = await sale.redis.hgetall(sale.keys.sale);
    for (const state of ['warm', 'open', 'open', 'paused', 'open', 'closed', 'closed']) {
      expect(await sale.setState(state)).to.equal('set');
      expect(await sale.redis.hgetall(sale.keys.sale)).to.deep.equal({ ...before, state });
    }
  });

  it('never leaves the state closed', async () => {
    const sale = await runner.sale();
    await sale.setState('closed');
    for (const state of ['open', 'paused', 'warm']) expect(await sale.setState(state)).to.equal('closed');
    expect((await sale.snapshot()).state).to.equal('closed');
  });

  it('cannot reach the keys of another sale through a sale id', () => {
    const names = (saleId: string): string[] => Object.values(bucketKeys({ saleId, bucket: 0 }));
    const [one, two] = [freshSaleId(), freshSaleId()];
    expect(names(one).filter((key) => names(two).includes(key))).to.deep.equal([]);
    expect(
      names('1').filter((key) => Object.values(bucketKeys({ saleId: '1', bucket: 1 })).includes(key)),
    ).to.deep.equal([]);
  });
});
