import { expect } from 'chai';
import { newBatchId } from '../../src/core/batch.js';
import { ScriptRunner, type SaleScripts } from './script-runner.js';

describe('lua/unpark-2.lua', () => {
  const runner = ScriptRunner.inSuite();
  let sale: SaleScripts;
  beforeEach(async () => {
    sale = await runner.sale({ limitPerBuyer: 5 });
  });

  it('returns `unknown` and creates no marker for a batch in `pending` without a marker [C7]', async () => {
    const { batchId } = await sale.deducted('u1');
    await sale.redis.del(sale.marker(batchId));
    expect(await sale.unpark(batchId)).to.equal('unknown');
    const { pending, markers } = await sale.snapshot([batchId]);
    expect({ pending, markers }).to.deep.equal({ pending: [batchId], markers: {} });
    expect(await sale.unpark(newBatchId())).to.equal('unknown');
  });

  it('returns `aborted` or `recorded` even if the batch is in `pending`', async () => {
    const [aborted, recorded] = [newBatchId(), newBatchId()];
    await sale.redis.set(sale.marker(aborted), 'aborted');
    await sale.redis.set(sale.marker(recorded), 'deducted');
    for (const batchId of [aborted, recorded]) await sale.redis.zadd(sale.keys.pending, 1, batchId);
    expect(await sale.unpark(aborted)).to.equal('aborted');
    expect(await sale.unpark(recorded)).to.equal('recorded');
  });

  it('returns `unparked` for a reacquired batch, which holds its units in a later epoch', async () => {
    const batchId = newBatchId();
    await sale.redis.set(sale.marker(batchId), 'claimed{"v":1}');
    expect(await sale.unpark(batchId)).to.equal('unparked');
  });
});
