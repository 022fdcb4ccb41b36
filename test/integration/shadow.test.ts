import { expect } from 'chai';
import { randomUUID } from 'node:crypto';
import { Buyers } from '../chaos/harness/buyers.js';
import { type Program, readMetric, WRONG_ROWS } from '../chaos/harness/programs.js';
import { openSale } from '../chaos/harness/sales.js';
import { until } from '../chaos/harness/wait.js';
import { expectInvariants } from '../helpers/invariants.js';
import { useSystem } from '../helpers/system.js';

describe('a shadow of the worker', () => {
  let api: Program;
  const system = useSystem(async ({ programs }) => {
    [api] = (await Promise.all([programs.start('api'), programs.start('worker')])) as [Program, Program];
  });

  /** Lets buyers buy until the shadow has compared this many purchases. */
  async function buyUntil(shadow: Program, compared: number): Promise<void> {
    const { saleId } = await openSale(system.stack, { stock: 5000, limitPerBuyer: 2 });
    const buyers = new Buyers(saleId, system.stack.env.JWT_SECRET, () => [api.url]);
    await until(`the shadow has compared ${compared} purchases`, async () => {
      const bought = Array.from({ length: 20 }, (_, index) =>
        buyers.buy(randomUUID(), {
          quantity: 1 + (index % 2),
          ...(index % 4 === 0 ? { metadata: { size: 'L' } } : {}),
        }),
      );
      await Promise.all(bought);
      return (await readMetric(shadow, 'seckill_shadow_purchases_total')) >= compared;
    });
    await expectInvariants(system.stack, saleId, buyers.opLog);
  }
  const differences = (shadow: Program, field: string) =>
    readMetric(shadow, `seckill_shadow_differences_total{field="${field}"}`);

  it('of the same build sees no difference, and ends with 0', async () => {
    const shadow = await system.programs.start('worker', { args: ['--shadow'] });
    await buyUntil(shadow, 100);
    expect(await readMetric(shadow, 'seckill_shadow_differences_total')).to.equal(0);
    expect((await shadow.stop()).code, shadow.log).to.equal(0);
  });

  it('of a release that charges too much and loses metadata names both, and ends with 1', async () => {
    const shadow = await system.programs.start('worker', { args: ['--shadow'], preload: [WRONG_ROWS] });
    await buyUntil(shadow, 40);
    expect(await differences(shadow, 'amount')).to.be.at.least(40);
    expect(await differences(shadow, 'metadata')).to.be.at.least(5);
    for (const field of ['row', 'outcome', 'quantity', 'body'])
      expect(await differences(shadow, field), field).to.equal(0);
    expect((await shadow.stop()).code).to.equal(1);
    expect(shadow.log).to.contain('this build would write something else').and.contain('"field":"amount"');
  });

  it('ends after its time, with 1 if there was nothing to compare', async () => {
    const shadow = await system.programs.start('worker', { args: ['--shadow', '--for', '1s'] });
    expect(await shadow.ended()).to.deep.include({ code: 1 });
  });
});
