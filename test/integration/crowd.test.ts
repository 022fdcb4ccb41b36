import { expect } from 'chai';
import { Buyers, outcomeOf, userIds } from '../chaos/harness/buyers.js';
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

  it('turns 600 buyers, 150 units and 2 APIs into 150 orders and 450 sold_out answers [G1]', async () => {
    const { saleId } = await openSale(system.stack, { stock: 150 });
    const buyers = buyersOf(saleId, apis.slice(0, 2));
    const answers = await buyers.rush(userIds(600), 64, { tries: 5 });

    const words = new Map<string, number>();
    for (const answer of answers) {
      const word = outcomeOf(answer);
      words.set(word, (words.get(word) ?? 0) + 1);
    }
    expect(Object.fromEntries(words)).to.deep.equal({ accepted: 150, sold_out: 450 });
    const figures = await expectInvariants(system.stack, saleId, buyers.opLog);
    expect(figures).to.include({ sold: 150, rows: 150, liveRows: 150, unitsLeft: 0 });
  });

  it('neither oversells nor strands units when purchases of several units compete at the end [G1]', async () => {
    const { saleId } = await openSale(system.stack, { stock: 97, limitPerBuyer: 4 });
    const buyers = buyersOf(saleId, apis);
    const purchases = userIds(120).map((userId, index) => buyers.buy(userId, { quantity: 1 + (index % 4), tries: 5 }));
    await Promise.all(purchases);

    const figures = await expectInvariants(system.stack, saleId, buyers.opLog);
    expect(figures.sold + figures.unitsLeft).to.equal(97);
    const single = await buyers.buy('one-more');
    expect(single?.status, `${figures.unitsLeft} units left`).to.equal(figures.unitsLeft > 0 ? 202 : 409);
    await expectInvariants(system.stack, saleId, buyers.opLog);
  });
});
