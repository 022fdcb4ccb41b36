import { expect } from 'chai';
import { Buyers } from '../helpers/buyers.js';
import { expectInvariants } from '../helpers/invariants.js';
import { openSale } from '../helpers/open-sale.js';
import type { Program } from '../helpers/programs.js';
import { useSystem } from '../helpers/system.js';
import { until } from '../helpers/until.js';

const WORKER = { env: { WORKER_INVISIBLE_MS: '10000', MYSQL_QUERY_TIMEOUT_MS: '5000' } };

describe('kill -9 of every program at once', () => {
  let apis: Program[] = [];
  const system = useSystem(startAll);

  async function startAll({ programs }: Pick<typeof system, 'programs'>): Promise<void> {
    const [first, second] = await Promise.all([
      programs.start('api'),
      programs.start('api'),
      programs.start('worker', WORKER),
      programs.start('keeper'),
    ]);
    apis = [first, second];
  }

  it('G6 L2 under load, then a new start: every batch ends by its own marker, at rest in 40 s', async () => {
    const { stack, programs } = system;
    const { saleId } = await openSale(stack, { stock: 100_000 });
    const buyers = new Buyers(saleId, stack.env.JWT_SECRET, () => apis.map(({ url }) => url));
    const load = buyers.startLoad({ parallel: 64, pauseMs: 5, tries: 1 });
    await until('the load is on', () => buyers.opLog.count('ok') > 500, 30_000);

    const victims = programs.running;
    const exits = await Promise.all(victims.map((program) => program.crash()));
    expect(exits.map(({ signal }) => signal)).to.deep.equal(['SIGKILL', 'SIGKILL', 'SIGKILL', 'SIGKILL']);
    await load.stop();
    expect(buyers.opLog.count('unknown'), 'purchases were under way').to.be.greaterThan(0);
    expect(await stack.audit.ledger.pendingCount({ saleId, bucket: 0 }), 'batches were open').to.be.greaterThan(0);

    await startAll(system);
    const figures = await expectInvariants(stack, saleId, buyers.opLog);
    expect(figures.sold, 'every unit that Redis gave is an order').to.equal(figures.rows);
    await buyers.askAgain();
    expect(buyers.opLog.count('unknown')).to.equal(0);
    const settled = await expectInvariants(stack, saleId, buyers.opLog);
    expect(settled.rows).to.equal(buyers.opLog.count('ok'));
  });
});
