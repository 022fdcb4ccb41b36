import { expect } from 'chai';
import { SaleScripts, ScriptRunner } from './script-runner.js';
import { saleOf } from '../helpers/sales.js';

describe('lua/warm-2.lua', () => {
  const runner = ScriptRunner.inSuite();

  it('returns `warmed` and loads the units and every field of the sale in state `warm`', async () => {
    const sale = new SaleScripts(runner, saleOf({ stock: 25, limitPerBuyer: 3, epoch: 2 }));
    expect(await sale.warm()).to.equal('warmed');
    const [, runId] = /run_id:(\w+)/.exec(await sale.redis.info('server')) ?? [];
    const [, masterSince] = /second_repl_offset:(\S+)/.exec(await sale.redis.info('replication')) ?? [];
    expect(await sale.redis.get(sale.keys.stock)).to.equal('25');
    expect(await sale.redis.hgetall(sale.keys.sale)).to.deep.equal({
      state: 'warm',
      epoch: '2',
      run_id: `${runId}${masterSince}`,
      limit_per_buyer: '3',
      buckets: '1',
      opens_at: String(sale.sale.opensAtMs),
      closes_at: String(sale.sale.closesAtMs),
    });
    expect(await sale.redis.pttl(sale.keys.stock)).to.equal(-1);
    expect(await sale.redis.pttl(sale.keys.sale)).to.equal(-1);
  });

  it('returns `already_warm` and keeps the bucket, even if only one of its keys is left', async () => {
    for (const half of ['stock', 'sale'] as const) {
      const sale = await runner.sale({ stock: 5 });
      await sale.redis.del(sale.keys[half]);
      expect(await sale.warm({ stock: 500 }), `${half} is gone`).to.equal('already_warm');
      expect(await sale.redis.exists(sale.keys[half])).to.equal(0);
    }
  });
});
