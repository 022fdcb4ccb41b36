import { expect } from 'chai';
import type { ReconcileMeters } from '../../../src/ports/reconcile-meters.js';
import { compensateJob, reconcileJob } from '../../../src/reconcile/reconcile-jobs.js';
import { OPTIONS, ReconcileWorld } from './reconcile-world.js';

describe('the keeper jobs of reconcile', () => {
  it('compare every sale and count what was found; only where told so they order and do repairs', async () => {
    const world = new ReconcileWorld();
    const sale = await world.openSale();
    const told: unknown[] = [];
    const meters: ReconcileMeters = {
      reconciled: (findings) => told.push(findings),
      jobs: (counts) => told.push(counts),
    };
    const parts = { desk: world.reconcile, meters };
    await world.deducted(sale, ['u1']);
    world.onPublish = (batch) => world.work(batch);
    world.clock.advance(OPTIONS.safeAgeMs);
    await reconcileJob(parts, { apply: false }).runOnce();
    await compensateJob(parts).runOnce();
    await reconcileJob(parts, { apply: true }).runOnce();
    await compensateJob(parts).runOnce();
    await reconcileJob(parts, { apply: true }).runOnce();
    expect(told).to.deep.equal([
      { leak: 1 },
      { pending: 0, compensated: 0, failed_final: 0 },
      { leak: 1 },
      { pending: 0, compensated: 1, failed_final: 0 },
      {},
    ]);
    expect(new Set(world.runsBook.runs.map(({ actor, saleId }) => `${actor} ${saleId}`))).to.deep.equal(
      new Set(['keeper null']),
    );
  });
});
