import { expect } from 'chai';
import { ScriptRunner } from './script-runner.js';
import { batchOf, purchaseOf } from '../helpers/sales.js';

const CONNECTIONS = 8;
const CALLERS = 1000;

describe('lua: many callers on one sale, through several connections', () => {
  const runners: ScriptRunner[] = [];
  before(async () => {
    for (let i = 0; i < CONNECTIONS; i++) runners.push(await ScriptRunner.open());
  });
  after(() => Promise.all(runners.map((runner) => runner.close())));

  const runner = (index: number): ScriptRunner => runners[index % CONNECTIONS] as ScriptRunner;

  it('sells exactly the stock to a thousand concurrent callers, and once to each winner [I1]', async () => {
    const STOCK = 300;
    const sale = await runner(0).sale({ stock: STOCK, limitPerBuyer: 1 });
    const words = await Promise.all(
      Array.from({ length: CALLERS }, async (_, index) => {
        const batch = batchOf(sale.sale, [purchaseOf(`buyer-${index}`)]);
        const reply = (await sale.deduct(batch, runner(index))) as unknown[];
        return reply[0] === 'refused' ? reply[2] : reply[0];
      }),
    );
    expect(words.filter((word) => word === 'deducted')).to.have.length(STOCK);
    expect(words.filter((word) => word === 'sold_out')).to.have.length(CALLERS - STOCK);
    const { unitsLeft, buyers, requests, pending } = await sale.snapshot();
    expect(unitsLeft).to.equal(0);
    expect(Object.keys(buyers)).to.have.length(STOCK);
    expect(Object.keys(requests)).to.have.length(STOCK);
    expect(pending).to.have.length(STOCK);
  });

  it('keeps units and limits exact when batches of all sizes run at once [I1, I2]', async () => {
    const [STOCK, LIMIT] = [300, 3];
    const sale = await runner(0).sale({ stock: STOCK, limitPerBuyer: LIMIT });
    const batches = Array.from({ length: CALLERS / 4 }, (_, index) =>
      batchOf(
        sale.sale,
        Array.from({ length: 1 + (index % 7) }, (_, place) =>
          purchaseOf(`buyer-${(index * 13 + place * 31) % 400}/k${index}*${1 + ((index + place) % 3)}`),
        ),
      ),
    );
    const replies = await Promise.all(
      batches.map((batch, index) => sale.deduct(batch, runner(index)) as Promise<unknown[]>),
    );
    const won = batches.filter((_, index) => replies[index]?.[0] === 'deducted');
    const units = won.flatMap((batch) => batch.purchases).reduce((sum, { quantity }) => sum + quantity, 0);
    const { unitsLeft, buyers, pending } = await sale.snapshot();
    expect(unitsLeft).to.equal(STOCK - units);
    expect(replies.flat()).to.include('sold_out');
    expect(unitsLeft).to.be.within(0, 13); // fewer units were left than a batch of 14 units needs
    expect(Object.values(buyers).reduce((sum, held) => sum + held, 0)).to.equal(units);
    expect(Math.max(...Object.values(buyers))).to.be.at.most(LIMIT);
    expect(pending).to.have.members(won.map(({ batchId }) => batchId));
  });

  it('deducts once when a hundred copies of one batch arrive on all connections [S1]', async () => {
    const sale = await runner(0).sale({ stock: 50 });
    const batch = batchOf(sale.sale, [purchaseOf('u1*2')]);
    const replies = await Promise.all(
      Array.from({ length: 100 }, (_, index) => sale.deduct(batch, runner(index)) as Promise<unknown[]>),
    );
    expect(replies.filter(([word]) => word === 'deducted')).to.have.length(1);
    expect(replies.filter(([word]) => word === 'already_deducted')).to.have.length(99);
    expect((await sale.snapshot()).unitsLeft).to.equal(48);
  });
});
