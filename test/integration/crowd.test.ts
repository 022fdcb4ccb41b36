import { expect } from 'chai';
import { Buyers } from '../chaos/harness/buyers.js';
import { expectInvariants } from '../helpers/invariants.js';
import { openSale } from '../chaos/harness/sales.js';
import type { Program } from '../chaos/harness/programs.js';
import { useSystem } from '../helpers/system.js';

describe('load on several APIs, then a full comparison', () => {
  let apis: Program[];
  const system = useSystem(async ({ programs }) => {
    const worker = programs.start('worker');
    apis = await Promise.all([1, 2, 3].map(() => programs.start('api')));
    await worker;
  });

  const buyersOf = (saleId: string, processes: readonly Program[]): Buyers =>
    new Buyers(saleId, system.stack.env.JWT_SECRET, () => processes.map(({ url }) => url));

  it('turns 100 parallel clicks with one key on 3 APIs into one order and 2xx answers [S1]', async () => {
    const { saleId } = await openSale(system.stack, { stock: 50, limitPerBuyer: 5 });
    const buyers = buyersOf(saleId, apis);
    const clicks = await Promise.all(Array.from({ length: 100 }, () => buyers.buy('ann', { requestId: 'one-key' })));

    for (const click of clicks) {
      expect(click?.status).to.be.oneOf([200, 202]);
      expect(click?.json.requestId).to.equal('one-key');
    }
    const figures = await expectInvariants(system.stack, saleId, buyers.opLog);
    expect(figures).to.include({ rows: 1, sold: 1, unitsLeft: 49 });
  });
});
