import { expect } from 'chai';
import { ScriptRunner, type SaleScripts } from './script-runner.js';

describe('lua/release-4.lua', () => {
  const runner = ScriptRunner.inSuite();
  let sale: SaleScripts;
  beforeEach(async () => {
    sale = await runner.sale({ stock: 10, limitPerBuyer: 5 });
  });

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

  it('returns `repairing` and releases nothing while the sale is rebuilt [R10]', async () => {
    await sale.deducted('u1*3');
    await sale.redis.hset(sale.keys.sale, 'state', 'repair');
    const before = await sale.snapshot();
    for (const release of [sale.release('u1', '101'), sale.release('unknown', '1')]) {
      expect(((await release) as unknown[]).slice(0, 2)).to.deep.equal(['repairing', 7]);
    }
    expect(await sale.snapshot()).to.deep.equal(before);
  });

  it('returns the units once when fifty releases of one request run at once [C1]', async () => {
    await sale.deducted('u1*3');
    const replies = await Promise.all(Array.from({ length: 50 }, () => sale.release('u1', '101')));
    expect(replies.filter((reply) => (reply as unknown[])[0] === 'released')).to.have.length(1);
    expect((await sale.snapshot()).unitsLeft).to.equal(10);
  });
});
