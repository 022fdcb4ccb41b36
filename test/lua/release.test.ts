import { expect } from 'chai';
import type { Batch } from '../../src/core/batch.js';
import { createBatchStore } from '../../src/redis/batch-store.js';
import type { RedisConnection } from '../../src/redis/connection.js';
import { ScriptRunner, type SaleScripts } from './script-runner.js';
import { batchOf, liveOrderOf, purchasesOf } from '../helpers/sales.js';

describe('lua/release-4.lua', () => {
  let runner: ScriptRunner;
  let sale: SaleScripts;
  before(async () => {
    runner = await ScriptRunner.open();
  });
  beforeEach(async () => {
    sale = await runner.sale({ stock: 10, limitPerBuyer: 5 });
  });
  after(() => runner?.close());

  const deducted = async (...texts: string[]): Promise<Batch> => {
    const batch = batchOf(sale.sale, purchasesOf(...texts));
    expect(((await sale.deduct(batch)) as unknown[])[0]).to.equal('deducted');
    return batch;
  };
  const wordOf = async (reply: Promise<unknown>): Promise<unknown> => ((await reply) as unknown[])[0];

  it('closes a held request, returns its units and answers with units left and Redis time', async () => {
    const { batchId } = await deducted('u1*3', 'u2');
    const before = await runner.nowMs();
    const [word, left, atMs] = (await sale.release('u1', '101', { batchId })) as [string, number, number];
    expect([word, left]).to.deep.equal(['released', 9]);
    expect(atMs).to.be.within(before, await runner.nowMs());
    const { requests, buyers, unitsLeft } = await sale.snapshot();
    expect(requests).to.deep.equal({ 'u1/k1': 'released:101:3', 'u2/k1': `held:${batchId}:1` });
    expect({ buyers, unitsLeft }).to.deep.equal({ buyers: { u2: 1 }, unitsLeft: 9 });
  });

  it('closes the order that it names, whatever the batch', async () => {
    const { batchId } = await deducted('u1*3');
    await sale.markRecorded(batchId, [liveOrderOf('u1', '101')]);
    expect(await wordOf(sale.release('u1', '101', { batchId: 'another' }))).to.equal('released');
    expect((await sale.snapshot()).unitsLeft).to.equal(10);
  });

  it('closes the request and lowers the units of the buyer without returning units to stock [D6]', async () => {
    await deducted('u1*3');
    const [word, left] = (await sale.release('u1', '101', { withUnits: false })) as unknown[];
    expect([word, left]).to.deep.equal(['released', 7]);
    expect(await sale.snapshot()).to.deep.include({
      unitsLeft: 7,
      buyers: {},
      requests: { 'u1/k1': 'released:101:3' },
    });
  });

  it('returns repairing and releases nothing while the sale is rebuilt [R10]', async () => {
    await deducted('u1*3');
    await sale.redis.hset(sale.keys.sale, 'state', 'repair');
    const before = await sale.snapshot();
    for (const release of [sale.release('u1', '101'), sale.release('unknown', '1')]) {
      expect(((await release) as unknown[]).slice(0, 2)).to.deep.equal(['repairing', 7]);
    }
    expect(await sale.snapshot()).to.deep.equal(before);
  });

  it('releases an order of the request under any order id, because its row may have been lost and written again', async () => {
    const { batchId } = await deducted('u1*3');
    await sale.markRecorded(batchId, [liveOrderOf('u1', '101')]);
    expect(await wordOf(sale.release('u1', '999', { batchId }))).to.equal('released');
    const { requests, unitsLeft } = await sale.snapshot();
    expect([requests, unitsLeft]).to.deep.equal([{ 'u1/k1': 'released:999:3' }, 10]);
  });

  it('returns nothing when the request was never accepted or another batch holds it', async () => {
    const { batchId } = await deducted('u1', 'u2', 'u3');
    const before = await sale.snapshot([batchId]);
    for (const release of [
      sale.release('unknown', '1'),
      sale.release('u1', '1', { requestId: 'k2' }),
      sale.release('u1', '1', { batchId: `${batchId}x` }),
    ]) {
      expect(((await release) as unknown[]).slice(0, 2)).to.deep.equal(['nothing', 7]);
    }
    expect(await sale.snapshot([batchId])).to.deep.equal(before);
  });

  it('returns nothing when the request was released before, even without units or for another row [C3]', async () => {
    await deducted('u1*3');
    await sale.release('u1', '101');
    const before = await sale.snapshot();
    expect(await wordOf(sale.release('u1', '101'))).to.equal('nothing');
    expect(await wordOf(sale.release('u1', '101', { withUnits: false }))).to.equal('nothing');
    expect(await wordOf(sale.release('u1', '102'))).to.equal('nothing');
    expect(await sale.snapshot()).to.deep.equal(before);
  });

  it('returns the units once when fifty releases of one request run at once [C1]', async () => {
    await deducted('u1*3');
    const words = await Promise.all(Array.from({ length: 50 }, () => wordOf(sale.release('u1', '101'))));
    expect(words.filter((word) => word === 'released')).to.have.length(1);
    expect((await sale.snapshot()).unitsLeft).to.equal(10);
  });

  it('keeps a released request released: mark-recorded skips it and deduct returns replayed [I8]', async () => {
    const { batchId } = await deducted('u1');
    await sale.release('u1', '101', { batchId });
    expect(await sale.markRecorded(batchId, [liveOrderOf('u1', '101')])).to.equal(0);
    const again = await sale.deduct(batchOf(sale.sale, purchasesOf('u1')));
    expect(again).to.deep.equal(['refused', 0, 'replayed', 'released:101:1']);
    expect((await sale.snapshot()).unitsLeft).to.equal(10);
  });

  it('sends many releases in chunks so that other calls get through, and returns each unit once', async () => {
    const BUYERS = 300;
    sale = await runner.sale({ stock: 500 });
    const names = Array.from({ length: BUYERS }, (_, index) => `u${index}`);
    const { batchId } = await deducted(...names);
    let underWay = 0;
    let most = 0;
    const { connection } = runner;
    const counted: RedisConnection = {
      ...connection,
      async run(name, keys, args) {
        most = Math.max(most, ++underWay);
        try {
          return await connection.run(name, keys, args);
        } finally {
          underWay--;
        }
      },
    };
    const { saleId } = sale.sale;
    const releases = names.map((userId, index) => ({
      saleId,
      bucket: 0,
      userId,
      requestId: 'k1',
      orderId: String(index + 1),
      batchId,
      withUnits: true,
    }));
    const store = createBatchStore(counted);
    expect(new Set(await store.release(releases))).to.deep.equal(new Set(['released']));
    expect(new Set(await store.release(releases)), 'again').to.deep.equal(new Set(['nothing']));
    expect(most).to.be.within(2, 64);
    expect((await sale.snapshot()).unitsLeft).to.equal(500);
  });
});
