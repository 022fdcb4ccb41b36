import { expect } from 'chai';
import { OperationalError } from '../../../../src/core/errors.js';
import type { RecoveryMetrics } from '../../../../src/recovery/metrics.js';
import { compensateJob, reconcileJob, tidyRuns } from '../../../../src/operate/reconcile/jobs.js';
import { ReconcileWorld } from './reconcile-world.js';
import { noRecoveryMetrics } from '../../../helpers/no-metrics.js';

/** Returns a step that fails once, as in a short Redis outage. */
function failingOnce(): () => void {
  let failed = false;
  return () => {
    if (failed) return;
    failed = true;
    throw new OperationalError('redis', 'away', { retryable: true });
  };
}

describe('keeper jobs of reconcile', () => {
  it('compare every sale and count findings, but create and process jobs only with apply', async () => {
    const world = new ReconcileWorld();
    const sale = await world.openSale();
    const counted: unknown[] = [];
    const metrics: RecoveryMetrics = {
      ...noRecoveryMetrics,
      reconciled: (findings) => counted.push(findings),
      compensationJobs: (counts) => counted.push(counts),
    };
    const parts = { reconcile: world.reconcile, metrics };
    await world.stray(sale, ['u1']);
    world.onPublish = (batch) => world.work(batch);
    await reconcileJob(parts, { apply: false }).runOnce();
    await compensateJob(parts).runOnce();
    await reconcileJob(parts, { apply: true }).runOnce();
    await compensateJob(parts).runOnce();
    await reconcileJob(parts, { apply: true }).runOnce();
    expect(counted).to.deep.equal([
      { leak: 1 },
      { pending: 0, compensated: 0, failed_final: 0 },
      { leak: 1 },
      { pending: 0, compensated: 1, failed_final: 0 },
      {},
    ]);
    expect(new Set(world.runsRepository.runs.map(({ actor, saleId }) => `${actor} ${saleId}`))).to.deep.equal(
      new Set(['keeper null']),
    );
  });

  it('count findings, and fail the run if it could not compare every sale', async () => {
    const world = new ReconcileWorld();
    for (let sales = 0; sales < 2; sales++) await world.openSale();
    world.read.beforeUnitsRead = failingOnce();
    const counted: unknown[] = [];
    const metrics: RecoveryMetrics = {
      ...noRecoveryMetrics,
      reconciled: (findings) => counted.push(findings),
    };
    const ran = await reconcileJob({ reconcile: world.reconcile, metrics }, { apply: false })
      .runOnce()
      .catch((error: Error) => error.message);
    expect([counted, ran]).to.deep.equal([[{}], '1 sale was not compared; the warnings above say why']);
  });

  it('delete old records of runs and compensations', async () => {
    const world = new ReconcileWorld();
    const job = { kind: 'leak', saleId: '1', batchId: null, userId: 'u', requestId: 'k', detail: '' } as const;
    await world.jobs.add([{ ...job, subject: '1/u/k' }], 'ann');
    await world.jobs.done('1', 'ann', '');
    const run = () => world.reconcile.run({ apply: false, waitMs: 0, actor: 'keeper' });
    for (let runs = 0; runs < 250; runs++) await run();
    world.clock.advance(1001);
    await run();
    await tidyRuns(world.reconcile, { keepMs: 1000 }).runOnce();
    expect(world.runsRepository.runs).to.have.length(1);
    expect(world.jobs.jobs).to.deep.equal([]);
  });
});
