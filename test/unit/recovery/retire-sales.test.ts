import { expect } from 'chai';
import type { Batch } from '../../../src/core/batch.js';
import { OperationalError } from '../../../src/core/errors.js';
import type { Sale } from '../../../src/core/sale.js';
import { forgetRetiredSales, retireSales, type RetirePorts } from '../../../src/recovery/retire-sales.js';
import { repairSale } from '../../../src/recovery/repair/repair-sale.js';
import { MemoryReconcileRepository } from '../../helpers/memory/memory-reconcile.js';
import { MemoryRepairRepository } from '../../helpers/memory/memory-repair-repository.js';
import { MemoryRepairStore } from '../../helpers/memory/memory-repair-store.js';
import { replacing } from '../../helpers/replacing.js';
import { ReconcileWorld } from '../operate/reconcile/reconcile-world.js';
import { noRecoveryMetrics } from '../../helpers/no-metrics.js';

const DAY_MS = 86_400_000;
const OPTIONS = { afterMs: 7 * DAY_MS, markerAgeMs: DAY_MS };

describe('keeper: retire-sales', () => {
  let world: ReconcileWorld;
  let retired: number;
  let why: unknown[];
  beforeEach(() => {
    world = new ReconcileWorld();
    world.store.keepHistory();
    retired = 0;
    why = [];
  });

  const ports = (): RetirePorts => {
    const { store, read, repairs, mysql, deadLetters, clock } = world;
    return {
      sales: mysql,
      batches: store,
      store: read,
      repairs,
      repository: new MemoryReconcileRepository(mysql, deadLetters),
      parkedBatchesOf: (saleId) => new MemoryRepairRepository(mysql, deadLetters).parkedBatchesOf(saleId),
      reconcile: world.reconcile,
      clock,
      log: { ...world.log, warn: (fields) => void why.push((fields as { why?: unknown }).why) },
      metrics: { ...noRecoveryMetrics, saleRetired: () => void retired++ },
    };
  };
  const retire = (): Promise<unknown> => retireSales(ports(), OPTIONS).runOnce();
  const forget = (): Promise<unknown> =>
    forgetRetiredSales({ sales: world.mysql, store: world.store }, { snapshotMs: 0 }).runOnce();
  const bucketOf = ({ saleId }: Sale) => world.store.bucket({ saleId, bucket: 0 });
  const now = ({ saleId }: Sale): Sale => world.mysql.saleOf(saleId)!;
  const close = async (sale: Sale): Promise<void> => {
    await world.mysql.move(sale.saleId, 'closed');
    await world.store.setState(sale, 'closed');
  };
  /** Creates a closed sale with orders of these buyers, after all their effects. */
  const closedSale = async (...texts: string[]): Promise<{ sale: Sale; batch: Batch }> => {
    const sale = await world.openSale();
    const batch = await world.deducted(sale, texts);
    await world.work(batch);
    await world.publishNotifications();
    await close(sale);
    return { sale, batch };
  };

  it('retires a sale long after its end, and later makes Redis forget it', async () => {
    const { sale, batch } = await closedSale('u1', 'u2');
    const young = await closedSale('u3');
    world.mysql.putSale({ ...now(young.sale), closesAtMs: world.clock.nowMs() + 30 * DAY_MS });
    world.clock.advance(OPTIONS.afterMs - 1);
    await retire();
    expect(retired, 'too early').to.equal(0);
    world.clock.advance(3_600_000 + 1);
    await retire();
    expect([retired, why]).to.deep.equal([2, []]);
    expect(now(sale)).to.include({ state: 'closed', retiredAtMs: world.clock.nowMs(), epoch: 1 });

    await forget();
    expect(bucketOf(sale).sale?.state, 'apis may still ask').to.equal('closed');
    world.clock.advance(60_000);
    await forget();
    expect(bucketOf(sale).sale).to.equal(null);
    expect(bucketOf(sale).requests.size).to.equal(0);
    expect(world.rowsOf(batch)).to.have.length(2);
    expect(await world.mysql.toForget(0, 10)).to.deep.equal([]);
    await retire();
    expect(retired).to.equal(2);
  });

  const REASONS: Record<string, (sale: Sale) => Promise<unknown>> = {
    pending: (sale) => world.deducted(sale, ['u7']),
    parked: (sale) => world.parkedBatch(sale, ['u7']),
    outbox: async (sale) => world.work(await world.deducted(sale, ['u7'])), // without publishing its events
    differs: (sale) => world.stray(sale, ['u7']),
  };
  for (const [reason, cause] of Object.entries(REASONS)) {
    it(`keeps a sale that has open work: ${reason}`, async () => {
      const { sale } = await closedSale('u1');
      world.store.bucket({ saleId: sale.saleId, bucket: 0 }).sale!.state = 'open';
      await cause(sale);
      await world.store.setState(sale, 'closed');
      world.clock.advance(9 * DAY_MS);
      const job = retireSales(ports(), OPTIONS);
      await job.runOnce();
      await job.runOnce();
      expect([retired, why]).to.deep.equal([0, [reason]]);
    });
  }

  it('skips a sale that another run is comparing, and retires it in the next run', async () => {
    const { sale } = await closedSale('u1');
    world.clock.advance(9 * DAY_MS);
    await world.runsRepository.lease(sale.saleId, 'another run', 60_000);
    const job = retireSales(ports(), OPTIONS);
    await job.runOnce();
    expect([retired, why]).to.deep.equal([0, []]);
    await world.runsRepository.free(sale.saleId, 'another run');
    await job.runOnce();
    expect([retired, why]).to.deep.equal([1, []]);
  });

  it('keeps a sale while a compensation is due, and tries again later', async () => {
    const { sale } = await closedSale('u1');
    const { saleId } = sale;
    const kind = 'leak' as const;
    const subject = `${saleId}/u9/k1`;
    await world.jobs.add([{ kind, subject, saleId, batchId: null, userId: 'u9', requestId: 'k1', detail: '' }], 'ann');
    world.clock.advance(9 * DAY_MS);
    const job = retireSales(ports(), OPTIONS);
    await job.runOnce();
    expect([retired, why]).to.deep.equal([0, ['compensation']]);
    const [first] = await world.jobs.list({ saleId }, { max: 1 });
    await world.jobs.done(first!.jobId, 'ann', '');
    await job.runOnce();
    expect(retired, 'not at once').to.equal(0);
    world.clock.advance(600_000);
    await job.runOnce();
    expect(retired).to.equal(1);
  });

  it('retires a sale after a Redis restart unless some data exists only in Redis [R1]', async () => {
    const { sale } = await closedSale('u1');
    const lost = await closedSale('u2');
    const held = await closedSale('u3');
    bucketOf(held.sale).sale!.state = 'open';
    await world.stray(held.sale, ['u4']);
    world.store.restart();
    bucketOf(lost.sale).sale = null;
    bucketOf(lost.sale).requests.clear();
    world.clock.advance(9 * DAY_MS);
    await retire();
    expect([now(sale), now(lost.sale)].map(({ retiredAtMs, epoch }) => [retiredAtMs !== null, epoch])).to.deep.equal([
      [true, 1],
      [true, 1],
    ]);
    expect(now(held.sale).retiredAtMs).to.equal(null);
    expect(why).to.deep.equal(['only_in_redis']);
    expect([...world.store.asks], 'then it can be compared').to.deep.equal([held.sale.saleId]);
  });

  it('keeps a sale that is being rebuilt, and never rebuilds a retired sale [R10]', async () => {
    const { sale } = await closedSale('u1');
    const store = new MemoryRepairStore(world.store);
    world.clock.advance(9 * DAY_MS);
    await store.lock({ saleId: sale.saleId, bucket: 0 }, 'another', 60_000);
    await retire();
    expect([retired, why]).to.deep.equal([0, ['in_repair']]);
    world.mysql.putSale({ ...now(sale), retiredAtMs: world.clock.nowMs() });
    const repair = repairSale(now(sale), undefined as never, undefined as never, { actor: 'ann' });
    expect(await repair).to.deep.equal({ outcome: 'retired' });
  });

  it('removes markers without an expiry that an earlier version left behind', async () => {
    const { sale, batch } = await closedSale('u1');
    bucketOf(sale).markers.set(batch.batchId, { kind: 'deducted', body: null });
    world.clock.advance(9 * DAY_MS);
    await retire();
    expect([retired, why]).to.deep.equal([1, []]);
    expect([...bucketOf(sale).markers.keys()]).to.deep.equal([]);
  });

  it('keeps a sale that changed while its markers were removed', async () => {
    const { sale, batch } = await closedSale('u1');
    bucketOf(sale).markers.set(batch.batchId, { kind: 'deducted', body: null });
    world.clock.advance(9 * DAY_MS);
    const { read } = world;
    const store = replacing(read, {
      removeMarkers: async (...args) => {
        bucketOf(sale).unitsLeft++;
        return read.removeMarkers(...args);
      },
    });
    await retireSales({ ...ports(), store }, OPTIONS).runOnce();
    expect([retired, why]).to.deep.equal([0, ['differs']]);
  });

  it('continues past a sale that cannot be read, and fails the run', async () => {
    await closedSale('u1');
    const other = await closedSale('u2');
    world.clock.advance(9 * DAY_MS);
    world.store.breakNext('read_fails');
    expect(await retire().catch((error: Error) => error.name)).to.equal('OperationalError');
    expect([retired, now(other.sale).retiredAtMs !== null]).to.deep.equal([1, true]);
  });

  it('continues past a retired sale that Redis cannot forget at the moment', async () => {
    const [away, well] = [await closedSale('u1'), await closedSale('u2')];
    world.clock.advance(9 * DAY_MS);
    await retire();
    world.clock.advance(60_000);
    const forgetOne = async (sale: Sale): Promise<void> => {
      if (sale.saleId === away.sale.saleId) throw new OperationalError('redis', 'away', { retryable: true });
      await world.store.forget(sale);
    };
    const store = replacing(world.store, { forget: forgetOne });
    const job = forgetRetiredSales({ sales: world.mysql, store }, { snapshotMs: 0 });
    expect(await job.runOnce().catch((error: Error) => error.name)).to.equal('OperationalError');
    expect((await world.mysql.toForget(0, 10)).map(({ saleId }) => saleId)).to.deep.equal([away.sale.saleId]);
    expect(bucketOf(well.sale).sale).to.equal(null);
    await forget();
    expect(await world.mysql.toForget(0, 10)).to.deep.equal([]);
  });

  it('makes Redis forget a sale only after the snapshots that apis share have expired', async () => {
    const { sale } = await closedSale('u1');
    world.clock.advance(9 * DAY_MS);
    await retire();
    const job = forgetRetiredSales({ sales: world.mysql, store: world.store }, { snapshotMs: 600_000 });
    world.clock.advance(659_999);
    await job.runOnce();
    expect(bucketOf(sale).sale?.state).to.equal('closed');
    world.clock.advance(1);
    await job.runOnce();
    expect(bucketOf(sale).sale).to.equal(null);
  });
});
