import { expect } from 'chai';
import type { Sale } from '../../../src/core/sale.js';
import type { Job } from '../../../src/core/job.js';
import { markRecorded } from '../../../src/recovery/mark-recorded.js';
import { batchOf, certainEntry } from '../../helpers/sales.js';
import { KeeperWorld } from '../orders/keeper-world.js';

const AFTER_MS = 5000;

describe('keeper: mark-recorded', () => {
  let world: KeeperWorld;
  let job: Job;
  let sale: Sale;

  beforeEach(async () => {
    world = new KeeperWorld();
    const { mysql, store, metrics } = world;
    job = markRecorded({ sales: mysql, store, repository: mysql, metrics }, { afterMs: AFTER_MS, maxPerBucket: 10 });
    sale = await world.openSale();
  });

  const at = (): { saleId: string; bucket: number } => ({ saleId: sale.saleId, bucket: 0 });
  const entryOf = (userId: string) => certainEntry(world.store.findRequest(at(), userId, 'k1'));
  const pending = async (): Promise<number> => (await world.store.pendingSummary(at())).batches;

  it('marks batches that are in MySQL but still pending in Redis [M9]', async () => {
    const batch = await world.deducted(sale, ['u1', 'u2*2']);
    const [first, second] = await world.recorded(batch);
    world.clock.advance(AFTER_MS);
    await job.runOnce();
    expect(await entryOf('u1')).to.deep.equal({ state: 'ordered', orderId: first, quantity: 1 });
    expect(await entryOf('u2')).to.deep.equal({ state: 'ordered', orderId: second, quantity: 2 });
    expect([await pending(), world.counts.markedLate]).to.deep.equal([0, 1]);
  });

  it('leaves a young batch to its worker and a batch without rows to the re-drive', async () => {
    await world.deducted(sale, ['u1']);
    world.clock.advance(AFTER_MS - 1);
    const young = await world.deducted(sale, ['u2']);
    await world.recorded(young);
    world.clock.advance(1);
    await job.runOnce();
    expect([await pending(), world.counts.markedLate]).to.deep.equal([2, 0]);
  });

  it('marks nothing if a row belongs to another batch, and leaves it to the worker', async () => {
    const batch = await world.deducted(sale, ['u1', 'u2']);
    await world.recorded(batchOf(sale, batch.purchases.slice(0, 1), 'earlier-batch'));
    await world.recorded(batchOf(sale, batch.purchases.slice(1), batch.batchId));
    world.clock.advance(AFTER_MS);
    await job.runOnce();
    expect((await entryOf('u2'))?.state).to.equal('held');
    expect([await pending(), world.counts.markedLate]).to.deep.equal([1, 0]);
  });

  it('marks nothing until every row exists', async () => {
    const batch = await world.deducted(sale, ['u1', 'u2']);
    await world.recorded(batchOf(sale, batch.purchases.slice(0, 1), batch.batchId));
    world.clock.advance(AFTER_MS);
    await job.runOnce();
    expect([await pending(), (await entryOf('u1'))?.state]).to.deep.equal([1, 'held']);
  });

  it('turns no ended row into an order [C6]', async () => {
    const batch = await world.deducted(sale, ['u1', 'u2', 'u3']);
    const [, second] = await world.recorded(batch, ['u3']);
    world.mysql.endOrder(second as string, 'cancelled');
    world.clock.advance(AFTER_MS);
    await job.runOnce();
    const states = await Promise.all(['u1', 'u2', 'u3'].map(async (user) => (await entryOf(user))?.state));
    expect(states).to.deep.equal(['ordered', 'held', 'held']);
    expect(await pending()).to.equal(0);
  });

  it('skips a batch without a body, which the re-drive reports', async () => {
    const lost = await world.deducted(sale, ['u1']);
    const good = await world.deducted(sale, ['u2']);
    await world.recorded(good);
    world.store.bucket(at()).markers.delete(lost.batchId);
    world.clock.advance(AFTER_MS);
    await job.runOnce();
    expect((await entryOf('u2'))?.state).to.equal('ordered');
  });

  it('reads only the bodies of recorded batches, in one query', async () => {
    for (const user of ['u1', 'u2', 'u3']) await world.deducted(sale, [user]);
    const recorded = await world.deducted(sale, ['u4']);
    world.clock.advance(AFTER_MS);
    const bodies: string[] = [];
    let lookups = 0;
    const { mysql, store } = world;
    const [readStale, find] = [store.stalePending.bind(store), mysql.findByPurchases.bind(mysql)];
    store.stalePending = async (...asked) => {
      const found = await readStale(...asked);
      bodies.push(...found.map(({ batchId }) => batchId));
      return found;
    };
    mysql.findByPurchases = async (...asked) => {
      lookups++;
      return find(...asked);
    };
    await job.runOnce();
    expect([bodies, lookups]).to.deep.equal([[], 0]);
    await world.recorded(recorded);
    await job.runOnce();
    expect([bodies, lookups]).to.deep.equal([[recorded.batchId], 1]);
    expect([await pending(), world.counts.markedLate]).to.deep.equal([3, 1]);
  });

  it('reaches batches behind many older unrecorded batches, then starts again with the oldest', async () => {
    const unrecorded = [];
    for (let index = 0; index < 25; index++) unrecorded.push(await world.deducted(sale, [`old${index}`]));
    world.clock.advance(1);
    await world.recorded(await world.deducted(sale, ['u1']));
    world.clock.advance(AFTER_MS);
    for (let runs = 0; runs < 3; runs++) await job.runOnce(); // 10 batches of a bucket in one run
    expect((await entryOf('u1'))?.state).to.equal('ordered');
    await world.recorded(unrecorded[0] as (typeof unrecorded)[0]);
    for (let runs = 0; runs < 3; runs++) await job.runOnce();
    expect((await entryOf('old0'))?.state).to.equal('ordered');
  });

  it('marks once if two keepers run at once', async () => {
    const batch = await world.deducted(sale, ['u1']);
    const [orderId] = await world.recorded(batch);
    world.clock.advance(AFTER_MS);
    await Promise.all([job.runOnce(), job.runOnce()]);
    expect(await entryOf('u1')).to.deep.equal({ state: 'ordered', orderId, quantity: 1 });
  });

  it('fails the run for a sale that is being rebuilt, and marks the other sales [R10]', async () => {
    const other = await world.openSale();
    for (const each of [sale, other]) await world.recorded(await world.deducted(each, ['u1']));
    world.clock.advance(AFTER_MS);
    world.store.breakNext('mark_recorded_fails');
    expect(await job.runOnce().catch((error: Error) => error.name)).to.equal('OperationalError');
    expect(world.counts.markedLate).to.equal(1);
  });

  it('fails the run in a MySQL outage, and marks in the next run [D1]', async () => {
    const batch = await world.deducted(sale, ['u1']);
    await world.recorded(batch);
    world.clock.advance(AFTER_MS);
    world.mysql.breakNext('read_fails');
    expect(await job.runOnce().catch((error: Error) => error.name)).to.equal('OperationalError');
    await job.runOnce();
    expect(await pending()).to.equal(0);
  });
});
