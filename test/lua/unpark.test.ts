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

  it('unparked: a parked batch is in pending again, from now on, and nothing else moves [M8]', async () => {
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

  it('already_pending: a repeat changes nothing, the age neither', async () => {
    const { batchId } = await deducted('u1');
    await sale.redis.zadd(sale.keys.pending, 12345, batchId);
    expect(await sale.unpark(batchId)).to.equal('already_pending');
    expect(await sale.redis.zscore(sale.keys.pending, batchId)).to.equal('12345');
  });

  it('recorded: a batch that is in MySQL does not come back into pending', async () => {
    const batch = await deducted('u1');
    await sale.markRecorded(batch.batchId, [liveOrderOf('u1', '101')]);
    expect(await sale.unpark(batch.batchId)).to.equal('recorded');
    expect((await sale.snapshot()).pending).to.deep.equal([]);
  });

  it('aborted: a batch that holds nothing', async () => {
    const batchId = newBatchId();
    expect(await sale.resolve(batchId)).to.equal('aborted');
    expect(await sale.unpark(batchId)).to.equal('aborted');
    expect((await sale.snapshot()).pending).to.deep.equal([]);
  });

  it('unknown: without a marker, even if it is in pending; and no marker is made [C7]', async () => {
    const { batchId } = await deducted('u1');
    await sale.redis.del(sale.marker(batchId));
    expect(await sale.unpark(batchId)).to.equal('unknown');
    const { pending, markers } = await sale.snapshot([batchId]);
    expect({ pending, markers }).to.deep.equal({ pending: [batchId], markers: {} });
    expect(await sale.unpark(newBatchId())).to.equal('unknown');
  });

  it('aborted and recorded win over the place in pending', async () => {
    const [aborted, recorded] = [newBatchId(), newBatchId()];
    await sale.redis.set(sale.marker(aborted), 'aborted');
    await sale.redis.set(sale.marker(recorded), 'deducted');
    for (const batchId of [aborted, recorded]) await sale.redis.zadd(sale.keys.pending, 1, batchId);
    expect(await sale.unpark(aborted)).to.equal('aborted');
    expect(await sale.unpark(recorded)).to.equal('recorded');
  });

  it('a reacquired batch holds its units in a later epoch: it goes back too', async () => {
    const batchId = newBatchId();
    await sale.redis.set(sale.marker(batchId), 'claimed{"v":1}');
    expect(await sale.unpark(batchId)).to.equal('unparked');
  });
});
