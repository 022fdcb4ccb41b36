import { expect } from 'chai';
import { ScriptRunner, type SaleScripts } from './script-runner.js';
import { batchOf, liveOrderOf, purchasesOf } from '../helpers/sales.js';

describe('lua/release-4.lua', () => {
  const runner = ScriptRunner.inSuite();
  let sale: SaleScripts;
  beforeEach(async () => {
    sale = await runner.sale({ stock: 10, limitPerBuyer: 5 });
  });

  const wordOf = async (reply: Promise<unknown>): Promise<unknown> => ((await reply) as unknown[])[0];

  it('closes a held request, returns its units, and reports the units left and Redis time', async () => {
    const { batchId } = await sale.deducted('u1*3', 'u2');
    const before = await runner.nowMs();
    const [word, left, atMs] = (await sale.release('u1', '101', { batchId })) as [string, number, number];
    expect([word, left]).to.deep.equal(['released', 9]);
    expect(atMs).to.be.within(before, await runner.nowMs());
    const { requests, buyers, unitsLeft } = await sale.snapshot();
    expect(requests).to.deep.equal({ 'u1/k1': 'released:101:3', 'u2/k1': `held:${batchId}:1` });
    expect({ buyers, unitsLeft }).to.deep.equal({ buyers: { u2: 1 }, unitsLeft: 9 });
  });

  it('closes the named order, whichever batch it belongs to', async () => {
    const { batchId } = await sale.deducted('u1*3');
    await sale.markRecorded(batchId, [liveOrderOf('u1', '101')]);
    expect(await wordOf(sale.release('u1', '101', { batchId: 'another' }))).to.equal('released');
    expect((await sale.snapshot()).unitsLeft).to.equal(10);
  });

  it('returns `repairing` and releases nothing while the sale is rebuilt [R10]', async () => {
    await sale.deducted('u1*3');
    await sale.redis.hset(sale.keys.sale, 'state', 'repair');
    const before = await sale.snapshot();
    for (const release of [sale.release('u1', '101'), sale.release('unknown', '1')]) {
      expect(((await release) as unknown[]).slice(0, 2)).to.deep.equal(['repairing', 7]);
    }
    expect(await sale.snapshot()).to.deep.equal(before);
  });

  it('returns no units if the request was already released, even without units or for another row [C3]', async () => {
    await sale.deducted('u1*3');
    await sale.release('u1', '101');
    const before = await sale.snapshot();
    expect(await wordOf(sale.release('u1', '101'))).to.equal('nothing');
    expect(await wordOf(sale.release('u1', '101', { withUnits: false }))).to.equal('nothing');
    expect(await wordOf(sale.release('u1', '102'))).to.equal('nothing');
    expect(await sale.snapshot()).to.deep.equal(before);
  });

  it('returns the units once when fifty releases of one request run at once [C1]', async () => {
    await sale.deducted('u1*3');
    const words = await Promise.all(Array.from({ length: 50 }, () => wordOf(sale.release('u1', '101'))));
    expect(words.filter((word) => word === 'released')).to.have.length(1);
    expect((await sale.snapshot()).unitsLeft).to.equal(10);
  });

  it('keeps a released request released: `mark-recorded` skips it and `deduct` returns `replayed` [I8]', async () => {
    const { batchId } = await sale.deducted('u1');
    await sale.release('u1', '101', { batchId });
    expect(await sale.markRecorded(batchId, [liveOrderOf('u1', '101')])).to.equal(0);
    const again = await sale.deduct(batchOf(sale.sale, purchasesOf('u1')));
    expect(again).to.deep.equal(['refused', 0, 'replayed', 'released:101:1']);
    expect((await sale.snapshot()).unitsLeft).to.equal(10);
  });
});
