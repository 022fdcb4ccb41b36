import { expect } from 'chai';
import { Buyers } from '../chaos/harness/buyers.js';
import { expectInvariants } from '../helpers/invariants.js';
import { openSale } from '../chaos/harness/sales.js';
import type { Program } from '../chaos/harness/programs.js';
import { useSystem } from '../helpers/system.js';
import { until } from '../chaos/harness/wait.js';

/** Ignores messages of earlier files, whose sale no longer exists. */
const ERROR_LINE = /"level":50(?!.*"unknown_sale")/;

describe('SIGTERM', () => {
  let apis: Program[];
  let worker: Program;
  let keeper: Program;
  const system = useSystem(async ({ programs }) => {
    [worker, keeper, ...apis] = await Promise.all([
      programs.start('worker'),
      programs.start('keeper', { env: { KEEPER_EVERY_MS: '500' } }),
      programs.start('api'),
      programs.start('api'),
    ]);
  });

  async function drained(program: Program): Promise<void> {
    expect(await program.stop(), program.name).to.deep.equal({ code: 0, signal: null });
    expect(program.log, program.name).not.to.match(ERROR_LINE);
  }

  it('drains an API under load, answers every accepted purchase and exits with 0 [T13]', async () => {
    const [leaving, staying] = apis as [Program, Program];
    const { saleId } = await openSale(system.stack, { stock: 100_000 });
    const urls = [leaving.url];
    const buyers = new Buyers(saleId, system.stack.env.JWT_SECRET, () => urls);
    const load = buyers.startLoad({ parallel: 32, pauseMs: 20, tries: 1 });
    await until('purchases are accepted', () => buyers.opLog.count('ok') > 50);

    const leaves = drained(leaving);
    urls[0] = staying.url; // like a load balancer
    await leaves;
    await load.stop();

    // only connections that were closed before their request was read may break
    const unknown = [...buyers.opLog.entries].filter(([, outcome]) => outcome === 'unknown').map(([key]) => key);
    const snapshot = await system.stack.audit.store.snapshot({ saleId, bucket: 0 });
    expect(
      unknown.filter((key) => snapshot?.requests.has(key)),
      'taken and not answered',
    ).to.deep.equal([]);
    await expectInvariants(system.stack, saleId, buyers.opLog);
  });

  it('drains worker and keeper under load, finishes their work and exits with 0 [T13]', async () => {
    const staying = apis[1] as Program;
    const { saleId } = await openSale(system.stack, { stock: 100_000 });
    const buyers = new Buyers(saleId, system.stack.env.JWT_SECRET, () => [staying.url]);
    const load = buyers.startLoad({ parallel: 16, pauseMs: 50 });
    await until('purchases are accepted', () => buyers.opLog.count('ok') > 50);

    await Promise.all([drained(worker), drained(keeper)]);
    const { pendingCount } = system.stack.audit.store;
    await until('batches wait for a worker', async () => (await pendingCount({ saleId, bucket: 0 })) > 0);
    await load.stop();
    await system.programs.start('worker');
    await expectInvariants(system.stack, saleId, buyers.opLog);
  });
});
