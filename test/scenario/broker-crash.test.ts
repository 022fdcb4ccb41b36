import { expect } from 'chai';
import { Buyers } from '../helpers/buyers.js';
import { expectInvariants } from '../helpers/invariants.js';
import { openSale } from '../helpers/open-sale.js';
import type { Program } from '../helpers/programs.js';
import { useSystem } from '../helpers/system.js';
import { until } from '../helpers/until.js';

describe('the broker', () => {
  let api: Program;
  const system = useSystem(async ({ programs }) => {
    [api] = await Promise.all([programs.start('api'), programs.start('worker'), programs.start('keeper')]);
  });

  it('M1 kill -9 of broker and proxy under load: nothing is deducted meanwhile, deducted = rows after it', async () => {
    const { stack, programs } = system;
    const { saleId } = await openSale(stack, { stock: 100_000 });
    const buyers = new Buyers(saleId, stack.env.JWT_SECRET, () => [api.url]);
    const load = buyers.startLoad({ parallel: 24, pauseMs: 30, tries: 1 });
    await until('the load is on', () => buyers.opLog.count('ok') > 300, 30_000);

    const proxy = stack.servers.server('proxy');
    await proxy.stop({ signal: 'SIGKILL' });
    expect(proxy.pid(), 'it is gone').to.equal(null);
    const unitsLeft = async (): Promise<number> =>
      (await stack.audit.ledger.snapshot({ saleId, bucket: 0 }))?.unitsLeft ?? Number.NaN;
    const refusedBefore = buyers.opLog.count('fail');
    await until('buyers are refused', () => buyers.opLog.count('fail') > refusedBefore + 50, 20_000);
    const during = await unitsLeft();
    await until('more buyers are refused', () => buyers.opLog.count('fail') > refusedBefore + 100, 20_000);
    expect(await unitsLeft(), 'no half message, no deduct').to.equal(during);

    await proxy.start();
    await proxy.waitReady();
    const okBefore = buyers.opLog.count('ok');
    await until('the same programs sell again', () => buyers.opLog.count('ok') > okBefore + 100, 40_000);
    await load.stop();
    expect(programs.running.map(({ name }) => name)).to.deep.equal(['api', 'worker', 'keeper']);

    const figures = await expectInvariants(stack, saleId, buyers.opLog);
    expect(figures.rows).to.be.at.least(buyers.opLog.count('ok'));
    await buyers.askAgain();
    const settled = await expectInvariants(stack, saleId, buyers.opLog);
    expect(settled.rows).to.equal(buyers.opLog.count('ok'));
  });
});
