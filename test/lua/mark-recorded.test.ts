import { expect } from 'chai';
import { newBatchId, BATCH_SIZE_CEILING, type Batch } from '../../src/core/batch.js';
import { ABORTED_LIFE_MS, RECORDED_LIFE_MS, ScriptRunner, type SaleScripts } from './script-runner.js';
import { batchOf, liveOrderOf, purchaseOf, purchasesOf } from '../helpers/sales.js';

describe('lua/mark-recorded-4.lua', () => {
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
  const order = liveOrderOf;

  it('moves requests from held to ordered and returns their number', async () => {
    const { batchId } = await deducted('u1*2', 'u2');
    expect(await sale.markRecorded(batchId, [order('u1', '101'), order('u2', '102')])).to.equal(2);
    const { requests, pending, buyers, unitsLeft } = await sale.snapshot();
    expect(requests).to.deep.equal({ 'u1/k1': 'ordered:101:2', 'u2/k1': 'ordered:102:1' });
    expect({ pending, buyers, unitsLeft }).to.deep.equal({ pending: [], buyers: { u1: 2, u2: 1 }, unitsLeft: 7 });
  });

  it('removes the body of the marker and sets an expiry, which a second call keeps or adds when it is missing', async () => {
    const { batchId } = await deducted('u1');
    const marker = sale.marker(batchId);
    const life = (): Promise<number> => sale.redis.pttl(marker);
    expect(await life(), 'it must outlive everything until the batch is recorded').to.equal(-1);
    await sale.markRecorded(batchId, [order('u1', '101')]);
    expect(await sale.redis.get(marker)).to.equal('deducted');
    expect(await life()).to.be.within(RECORDED_LIFE_MS - 10_000, RECORDED_LIFE_MS);
    await sale.redis.pexpire(marker, 50_000);
    await sale.markRecorded(batchId, [order('u1', '101')]);
    expect(await life()).to.be.within(40_000, 50_000);
    await sale.redis.persist(marker); // as an earlier version left the marker
    await sale.markRecorded(batchId, []);
    expect(await life()).to.be.within(RECORDED_LIFE_MS - 10_000, RECORDED_LIFE_MS);
  });

  it('returns repairing and moves nothing while the sale is rebuilt [R10]', async () => {
    const { batchId } = await deducted('u1');
    await sale.redis.hset(sale.keys.sale, 'state', 'repair');
    const before = await sale.snapshot([batchId]);
    expect(await sale.markRecorded(batchId, [order('u1', '101')])).to.equal('repairing');
    expect(await sale.markRecorded(batchId, []), 'nothing to move').to.equal('repairing');
    expect(await sale.snapshot([batchId])).to.deep.equal(before);
  });

  it('returns 0 and changes nothing when the batch was marked before [M9]', async () => {
    const { batchId } = await deducted('u1');
    await sale.markRecorded(batchId, [order('u1', '101')]);
    const before = await sale.snapshot([batchId]);
    expect(await sale.markRecorded(batchId, [order('u1', '999')])).to.equal(0);
    expect(await sale.snapshot([batchId])).to.deep.equal(before);
  });

  it('moves only requests that this batch holds: not released, ordered or unknown requests, nor requests of another batch [C6]', async () => {
    const { batchId } = await deducted('u1', 'u2', 'u3');
    const other = await deducted('u4');
    await sale.release('u1', '101', { batchId });
    await sale.markRecorded(batchId, [order('u2', '102')]);
    const orders = [order('u1', '201'), order('u2', '202'), order('u3', '203'), order('u4', '204'), order('u5', '205')];
    expect(await sale.markRecorded(batchId, orders)).to.equal(1);
    expect((await sale.snapshot()).requests).to.deep.equal({
      'u1/k1': 'released:101:1',
      'u2/k1': 'ordered:102:1',
      'u3/k1': 'ordered:203:1',
      'u4/k1': `held:${other.batchId}:1`,
    });
  });

  it('moves nothing for a batch id that is a prefix of another batch id', async () => {
    const batch = batchOf(sale.sale, purchasesOf('u1'), 'batch-12');
    await sale.deduct(batch);
    expect(await sale.markRecorded('batch-1', [order('u1', '101')])).to.equal(0);
    expect((await sale.snapshot()).requests).to.deep.equal({ 'u1/k1': 'held:batch-12:1' });
  });

  it('keeps the body in the marker from deduct to mark-recorded and then removes it', async () => {
    const batch = await deducted('u1', 'u2');
    expect((await sale.snapshot([batch.batchId])).markers).to.deep.equal({ [batch.batchId]: `deducted${batch.body}` });
    await sale.markRecorded(batch.batchId, [order('u1', '101')]);
    expect((await sale.snapshot([batch.batchId])).markers).to.deep.equal({ [batch.batchId]: 'deducted' });
  });

  it('removes a batch from `pending` when none of its requests became an order', async () => {
    const { batchId } = await deducted('u1');
    expect(await sale.markRecorded(batchId, [])).to.equal(0);
    const { requests, pending, markers } = await sale.snapshot([batchId]);
    expect({ requests, pending, markers }).to.deep.equal({
      requests: { 'u1/k1': `held:${batchId}:1` },
      pending: [],
      markers: { [batchId]: 'deducted' },
    });
  });

  it('keeps a claimed marker claimed and lets an aborted marker expire', async () => {
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
    const { batchId } = await deducted('u1');
    await sale.redis.del(sale.marker(batchId));
    expect(await sale.markRecorded(batchId, [order('u1', '101')])).to.equal(1);
    expect((await sale.snapshot([batchId])).markers).to.deep.equal({});
  });

  it('takes a batch of the maximum size', async () => {
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
