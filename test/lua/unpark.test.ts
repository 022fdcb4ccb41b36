import { expect } from 'chai';
import { newBatchId, type Batch } from '../../src/core/batch.js';
import { ScriptRunner, type SaleScripts } from './script-runner.js';
import { batchOf, liveOrderOf, purchasesOf } from '../helpers/sales.js';

describe('lua/unpark-2.lua', () => {
  let runner: ScriptRunner;
  let sale: SaleScripts;
  before(async () => {
    runner = await ScriptRunner.open();
  });
  beforeEach(async () => {
    sale = await runner.sale({ limitPerBuyer: 5 });
  });
  after(() => runner?.close());

  const deducted = async (...texts: string[]): Promise<Batch> => {
    const batch = batchOf(sale.sale, purchasesOf(...texts));
    expect(((await sale.deduct(batch)) as unknown[])[0]).to.equal('deducted');
    return batch;
  };
  const park = ({ batchId }: Batch) => sale.redis.zrem(sale.keys.pending, batchId);

  it('returns unparked, puts a parked batch into pending from now on and moves nothing else [M8]', async () => {
    const batch = await deducted('u1*2', 'u2');
    const before = await sale.snapshot([batch.batchId]);
    await park(batch);
    await sale.redis.zadd(sale.keys.pending, 1, 'older-batch');
    const beforeMs = await runner.nowMs();
    expect(await sale.unpark(batch.batchId)).to.equal('unparked');
    const score = Number(await sale.redis.zscore(sale.keys.pending, batch.batchId));
    expect(score).to.be.within(beforeMs, await runner.nowMs());
    await sale.redis.zrem(sale.keys.pending, 'older-batch');
    expect(await sale.snapshot([batch.batchId])).to.deep.equal(before);
  });

  it('returns already_pending on a repeat and changes neither the batch nor its age', async () => {
    const { batchId } = await deducted('u1');
    await sale.redis.zadd(sale.keys.pending, 12345, batchId);
    expect(await sale.unpark(batchId)).to.equal('already_pending');
    expect(await sale.redis.zscore(sale.keys.pending, batchId)).to.equal('12345');
  });

  it('returns recorded and keeps a batch that is in MySQL out of pending', async () => {
    const batch = await deducted('u1');
    await sale.markRecorded(batch.batchId, [liveOrderOf('u1', '101')]);
    expect(await sale.unpark(batch.batchId)).to.equal('recorded');
    expect((await sale.snapshot()).pending).to.deep.equal([]);
  });

  it('returns aborted for a batch that holds nothing', async () => {
    const batchId = newBatchId();
    expect(await sale.resolve(batchId)).to.equal('aborted');
    expect(await sale.unpark(batchId)).to.equal('aborted');
    expect((await sale.snapshot()).pending).to.deep.equal([]);
  });

  it('returns unknown and creates no marker when the marker is missing, even if the batch is in pending [C7]', async () => {
    const { batchId } = await deducted('u1');
    await sale.redis.del(sale.marker(batchId));
    expect(await sale.unpark(batchId)).to.equal('unknown');
    const { pending, markers } = await sale.snapshot([batchId]);
    expect({ pending, markers }).to.deep.equal({ pending: [batchId], markers: {} });
    expect(await sale.unpark(newBatchId())).to.equal('unknown');
  });

  it('returns aborted or recorded even if the batch is in pending', async () => {
    const [aborted, recorded] = [newBatchId(), newBatchId()];
    await sale.redis.set(sale.marker(aborted), 'aborted');
    await sale.redis.set(sale.marker(recorded), 'deducted');
    for (const batchId of [aborted, recorded]) await sale.redis.zadd(sale.keys.pending, 1, batchId);
    expect(await sale.unpark(aborted)).to.equal('aborted');
    expect(await sale.unpark(recorded)).to.equal('recorded');
  });

  it('returns unparked for a reacquired batch, which holds its units in a later epoch', async () => {
    const batchId = newBatchId();
    await sale.redis.set(sale.marker(batchId), 'claimed{"v":1}');
    expect(await sale.unpark(batchId)).to.equal('unparked');
  });
});
