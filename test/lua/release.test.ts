import { expect } from 'chai';
import { ScriptRunner, type SaleScripts } from './script-runner.js';

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

  it('returns the units once when fifty releases of one request run at once [C1]', async () => {
    await sale.deducted('u1*3');
    const words = await Promise.all(Array.from({ length: 50 }, () => wordOf(sale.release('u1', '101'))));
    expect(words.filter((word) => word === 'released')).to.have.length(1);
    expect((await sale.snapshot()).unitsLeft).to.equal(10);
  });
});
