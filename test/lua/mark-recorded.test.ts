import { expect } from 'chai';
import { newBatchId, BATCH_SIZE_CEILING } from '../../src/core/batch.js';
import { ABORTED_LIFE_MS, RECORDED_LIFE_MS, ScriptRunner, type SaleScripts } from './script-runner.js';
import { batchOf, liveOrderOf, purchaseOf, purchasesOf } from '../helpers/sales.js';

describe('lua/mark-recorded-4.lua', () => {
  const runner = ScriptRunner.inSuite();
  let sale: SaleScripts;
  beforeEach(async () => {
    sale = await runner.sale({ limitPerBuyer: 5 });
  });

  it('removes the body of the marker, and sets an expiry unless the marker has one', async () => {
    const { batchId } = await sale.deducted('u1');
    const marker = sale.marker(batchId);
    const life = (): Promise<number> => sale.redis.pttl(marker);
    expect(await life(), 'it must outlive everything until the batch is recorded').to.equal(-1);
    await sale.markRecorded(batchId, [liveOrderOf('u1', '101')]);
    expect(await sale.redis.get(marker)).to.equal('deducted');
    expect(await life()).to.be.within(RECORDED_LIFE_MS - 10_000, RECORDED_LIFE_MS);
    await sale.redis.pexpire(marker, 50_000);
    await sale.markRecorded(batchId, [liveOrderOf('u1', '101')]);
    expect(await life()).to.be.within(40_000, 50_000);
    await sale.redis.persist(marker); // as an earlier version left the marker
    await sale.markRecorded(batchId, []);
    expect(await life()).to.be.within(RECORDED_LIFE_MS - 10_000, RECORDED_LIFE_MS);
  });

  it('returns `repairing` and moves nothing while the sale is rebuilt [R10]', async () => {
    const { batchId } = await sale.deducted('u1');
    await sale.redis.hset(sale.keys.sale, 'state', 'repair');
    const before = await sale.snapshot([batchId]);
    expect(await sale.markRecorded(batchId, [liveOrderOf('u1', '101')])).to.equal('repairing');
    expect(await sale.markRecorded(batchId, []), 'nothing to move').to.equal('repairing');
    expect(await sale.snapshot([batchId])).to.deep.equal(before);
  });

  it('moves nothing if the batch id is only a prefix of another batch id', async () => {
    const batch = batchOf(sale.sale, purchasesOf('u1'), 'batch-12');
    await sale.deduct(batch);
    expect(await sale.markRecorded('batch-1', [liveOrderOf('u1', '101')])).to.equal(0);
    expect((await sale.snapshot()).requests).to.deep.equal({ 'u1/k1': 'held:batch-12:1' });
  });

  it('keeps a `claimed` marker and lets an `aborted` marker expire', async () => {
    const [claimed, aborted] = [newBatchId(), newBatchId()];
    await sale.redis.set(sale.marker(claimed), 'claimed{"v":1}');
    await sale.resolve(aborted);
    await sale.markRecorded(claimed, []);
    await sale.markRecorded(aborted, []);
    expect((await sale.snapshot([claimed, aborted])).markers).to.deep.equal({
      [claimed]: 'claimed',
      [aborted]: 'aborted',
    });
    expect(await sale.redis.pttl(sale.marker(aborted))).to.be.within(1, ABORTED_LIFE_MS);
  });

  it('creates no marker when the batch has no marker [C7]', async () => {
    const { batchId } = await sale.deducted('u1');
    await sale.redis.del(sale.marker(batchId));
    expect(await sale.markRecorded(batchId, [liveOrderOf('u1', '101')])).to.equal(1);
    expect((await sale.snapshot([batchId])).markers).to.deep.equal({});
  });

  it('accepts a batch of the maximum size', async () => {
    const large = await runner.sale({ stock: BATCH_SIZE_CEILING });
    const crowd = Array.from({ length: BATCH_SIZE_CEILING }, (_, index) => purchaseOf(`buyer-${index}`));
    const batch = batchOf(large.sale, crowd);
    await large.deduct(batch);
    const orders = crowd.map((purchase, index) => ({
      ...purchase,
      orderId: `9223372036854770${index}`,
      state: 'pending_payment' as const,
    }));
    expect(await large.markRecorded(batch.batchId, orders)).to.equal(BATCH_SIZE_CEILING);
    expect(await large.redis.hget(large.keys.requests, 'buyer-3/k1')).to.equal('ordered:92233720368547703:1');
  });
});
