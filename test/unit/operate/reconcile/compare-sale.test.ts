import { expect } from 'chai';
import { OperationalError } from '../../../../src/core/errors.js';
import type { Order } from '../../../../src/core/order.js';
import type { Sale } from '../../../../src/core/sale.js';
import { batchOf, purchasesOf } from '../../../helpers/sales.js';
import { OPTIONS, ReconcileWorld } from './reconcile-world.js';

describe('compare-sale', () => {
  let world: ReconcileWorld;
  let sale: Sale;
  beforeEach(async () => {
    world = new ReconcileWorld();
    sale = await world.openSale({ stock: 100, limitPerBuyer: 5 });
  });
  const bucket = () => world.store.bucket({ saleId: sale.saleId, bucket: 0 });
  const age = (ms = OPTIONS.safeAgeMs): void => world.clock.advance(ms);
  const found = (): Promise<string[]> => world.found(sale.saleId);

  it('reports a batch as a leak once it is old [C5]', async () => {
    const { batchId } = await world.deducted(sale, ['u1', 'u2*2']);
    expect(await found()).to.deep.equal([]);
    expect(world.runsRepository.runs[0]).to.deep.include({ outcome: 'match' });
    expect(world.runsRepository.runs[0]?.figures).to.include({ requests: 2, young: 2 });
    age();
    expect(await found(), 'the re-drive serves it').to.deep.equal([]);
    expect(world.runsRepository.runs.at(-1)).to.deep.include({ outcome: 'match' });
    expect(world.runsRepository.runs.at(-1)?.figures).to.include({ young: 0, waiting: 2 });
    age(OPTIONS.waitingMaxMs);
    expect(await found()).to.deep.equal(['overdue 2']);
    expect(world.jobs.jobs).to.deep.equal([]);
    bucket().markers.delete(batchId); // no re-drive can publish it now
    expect(await found()).to.deep.equal(['leak u1', 'leak u2']);
  });

  it('reads no young request, and leaves candidates beyond the limit to the next run [C5]', async () => {
    for (let user = 0; user < 50; user++) await world.deducted(sale, [`u${user}`]);
    let looks = 0;
    world.read.beforeEntriesRead = () => void looks++;
    expect(await found()).to.deep.equal([]);
    expect([looks, world.runsRepository.runs[0]?.figures.young]).to.deep.equal([0, 50]);

    const other = await world.openSale({ stock: 1000 });
    for (let user = 0; user < OPTIONS.readsMax + 7; user++) {
      await world.stray(other, [`u${user}`]);
    }
    looks = 0;
    const left = await world.found(other.saleId);
    expect([left.length, world.runsRepository.runs.at(-1)?.figures.unseen]).to.deep.equal([OPTIONS.readsMax, 7]);
    expect(looks).to.equal(3 * OPTIONS.readsMax);
  });

  it('never reports a match for a sale that Redis has lost [R5]', async () => {
    await world.work(await world.deducted(sale, ['u1']));
    bucket().sale = null;
    expect(await found()).to.deep.equal(['not_loaded']);
    expect(world.runsRepository.runs[0]).to.deep.include({ outcome: 'findings' });
    for (const state of ['warm', 'paused'] as const) {
      world.mysql.putSale({ ...(world.mysql.saleOf(sale.saleId) as Sale), state });
      expect(await found(), state).to.deep.equal(['not_loaded']);
    }
  });

  it('compares a closed sale without Redis, and reports a match only once it is retired', async () => {
    await world.work(await world.deducted(sale, ['u1']));
    await world.publishNotifications();
    bucket().sale = null;
    const closed = { ...(world.mysql.saleOf(sale.saleId) as Sale), state: 'closed' as const };
    world.mysql.putSale(closed);
    expect(await found()).to.deep.equal([]);
    world.mysql.putSale({ ...closed, retiredAtMs: 1 });
    expect(await found()).to.deep.equal([]);
    expect(world.runsRepository.runs.map(({ outcome }) => outcome)).to.have.members(['partly', 'match']);
  });

  it('reports a stable wrong count of orders, in either direction [D6]', async () => {
    await world.work(await world.deducted(sale, ['u1*2']));
    await world.publishNotifications();
    const counted = world.mysql.saleOf(sale.saleId) as Sale;
    world.mysql.putSale({ ...counted, sold: 3 });
    expect(await found()).to.deep.equal(['miscount 1']);
    world.mysql.putSale({ ...counted, sold: 1 });
    expect(await found()).to.deep.equal(['miscount -1']);
    world.mysql.putSale(counted);
    expect(await found()).to.deep.equal([]);
  });

  it('reports buyers whose units differ from their requests, but no drift [D6]', async () => {
    await world.work(await world.deducted(sale, ['u1*2']));
    await world.publishNotifications();
    world.read.buyersCountError = -2;
    expect(await found()).to.deep.equal(['miscount -2']);
    expect(world.runsRepository.runs[0]).to.deep.include({ outcome: 'findings' });
    await world.found(sale.saleId, true);
    expect(world.jobs.jobs).to.deep.equal([]);
  });

  it('reports refusals of the MySQL guard for a day, and longer while the stock differs [D6]', async () => {
    const batch = await world.deducted(sale, ['u1*2']);
    const [orderId = ''] = await world.recorded(batch, ['u1']);
    const row = world.mysql.allOrders.find((order) => order.orderId === orderId) as Order;
    world.mysql.putOrder({ ...row, reason: 'oversold_guard' });
    const release = { saleId: sale.saleId, bucket: 0, userId: 'u1', requestId: 'k1', orderId, batchId: batch.batchId };
    await world.store.release([{ ...release, withUnits: true }]);
    await world.store.markRecorded([{ batch, orders: [] }]);
    await world.mysql.outbox.markDone(world.mysql.outboxRows.map(({ id }) => id));
    expect(await found()).to.deep.equal(['oversell 2']);
    age(24 * 3_600_000);
    expect(await found()).to.deep.equal([]);
    expect(world.runsRepository.runs.at(-1)).to.deep.include({ outcome: 'match' });
    bucket().unitsLeft++;
    expect(await found()).to.have.members(['drift -1', 'oversell 2']);
  });

  it('finds rows that were written long after a sale closed', async () => {
    const batch = await world.deducted(sale, ['u1']);
    world.mysql.putSale({ ...sale, state: 'closed' });
    world.clock.advance(sale.closesAtMs - world.clock.nowMs() + 30 * 3_600_000);
    await world.work(batch); // a manual replay
    await world.publishNotifications();
    bucket().requests.delete('u1/k1');
    bucket().unitsLeft++;
    age();
    expect(await found()).to.deep.equal(['unheld u1']);
  });

  it('reports a batch that is not pending as a leak, unless its dead letter is parked', async () => {
    const gone = await world.deducted(sale, ['u1']);
    await world.store.park(gone);
    await world.parkedBatch(sale, ['u2']);
    expect(await found()).to.deep.equal(['leak u1']);
    expect(world.runsRepository.runs[0]?.figures).to.include({ parked: 1 });
  });

  for (const look of [2, 3]) {
    it(`reports no difference that read ${look} explains [C5]`, async () => {
      const batch = await world.stray(sale, ['u1']);
      let looks = 0;
      world.read.beforeEntriesRead = async () => {
        if (++looks === look) await world.work(batch); // a worker acts between the reads
      };
      expect(await found()).to.deep.equal([]);
      expect(looks, 'the fault happened').to.be.at.least(look);
    });
  }

  it('judges not_marked and unreleased by the age of the row', async () => {
    const [live, ended] = [await world.deducted(sale, ['u1']), await world.deducted(sale, ['u2'])];
    await world.recorded(live);
    await world.recorded(ended, ['u2']);
    expect(await found()).to.deep.equal([]);
    age();
    expect(await found()).to.have.members(['not_marked u1', 'unreleased u2']);
  });

  it('reports an order in Redis without a row, and a row without an order [D5]', async () => {
    const batch = await world.deducted(sale, ['u1', 'u2']);
    await world.work(batch);
    bucket().requests.delete('u1/k1');
    bucket().unitsLeft++;
    bucket().requests.set('u3/k1', { state: 'ordered', orderId: '99', quantity: 1 });
    bucket().unitsLeft--;
    age();
    expect(await found()).to.have.members(['unheld u1', 'order_lost u3']);
  });

  it('ignores a purchase that reacquire refused while its batch will write the row [R3]', async () => {
    sale = await world.openSale({ stock: 1 });
    const late = batchOf(sale, purchasesOf('u9'));
    await world.deducted(sale, ['u1']);
    expect(await world.store.reacquire(late, 1, new Set())).to.deep.equal({
      outcome: 'claimed',
      lost: new Set(['u9/k1']),
      elsewhere: new Set(),
    });
    expect(await found(), 'young').to.deep.equal([]);
    age();
    expect(await found(), 'the re-drive serves it').to.deep.equal([]);
    await world.parkDeadLetter(late);
    await world.store.park(late);
    expect(await found(), 'with a dead letter').to.deep.equal([]);
    world.deadLetters.deadLetters.length = 0;
    expect(await found(), 'without a dead letter').to.deep.equal(['order_lost u9']);
  });

  it('reports drift if nothing is in transit, and otherwise that the sale is moving [D6]', async () => {
    bucket().unitsLeft += 2;
    expect(await found()).to.deep.equal(['drift -2']);
    bucket().unitsLeft -= 5;
    expect(await found()).to.deep.equal(['drift 3']);
    const batch = await world.deducted(sale, ['u1']);
    expect(await found()).to.deep.equal([]);
    expect(world.runsRepository.runs.at(-1)?.figures).to.include({ moving: 1 });
    await world.work(batch);
    world.mysql.outbox.add('release', 'b', [
      { saleId: sale.saleId, bucket: 0, userId: 'u9', requestId: 'k1', orderId: '1', batchId: '', withUnits: true },
    ]);
    expect(await found(), 'a release is on its way').to.deep.equal([]);
  });

  it('reports an oversell if the count of sold units exceeds the stock [D6]', async () => {
    world.mysql.putSale({ ...sale, sold: 101 });
    expect(await found()).to.deep.equal(['oversell 1']);
  });

  it('reports old markers of a closed sale as stale, but never while the sale may sell [C7]', async () => {
    await world.work(await world.deducted(sale, ['u1']));
    await world.publishNotifications();
    age(OPTIONS.markerAgeMs);
    expect(await found()).to.deep.equal([]);
    world.mysql.putSale({ ...(world.mysql.saleOf(sale.saleId) as Sale), state: 'closed' });
    await world.store.setState(sale, 'closed');
    expect(await found()).to.deep.equal(['stale_marker']);
  });

  it('does not touch a sale that another run is comparing [C1]', async () => {
    await world.runsRepository.lease(sale.saleId, 'bob', 60_000);
    const results: string[] = [];
    const request = { saleId: sale.saleId, apply: true, waitMs: 0, actor: 'ann' };
    const run = await world.reconcile.run(request, ({ outcome }) => results.push(outcome));
    expect([results, run.salesTaken, run.outcome]).to.deep.equal([['taken'], 1, 'none']);
    await world.openSale();
    const all = await world.reconcile.run({ apply: false, waitMs: 0, actor: 'ann' });
    expect([all.salesCompared, all.outcome, world.runsRepository.runs.at(-1)?.outcome]).to.deep.equal([
      1,
      'partly',
      'partly',
    ]);
  });

  it('compares a long-running sale that closed after many newer sales', async () => {
    for (let sales = 0; sales < 501; sales++) {
      world.mysql.putSale({ ...sale, saleId: `9${sale.saleId}${sales}`, state: 'closed', closesAtMs: 1 });
    }
    world.mysql.putSale({ ...sale, state: 'closed' });
    const run = await world.reconcile.run({ apply: false, waitMs: 0, actor: 'keeper' });
    expect(run.salesCompared).to.equal(1);
  });

  it('stops and returns `taken` if the run was too slow to renew its lease [C1]', async () => {
    const { lease } = world.runsRepository;
    let asked = 0;
    world.runsRepository.lease = (saleId, owner, leaseMs) =>
      lease.call(world.runsRepository, saleId, ++asked === 1 ? 'bob' : owner, leaseMs);
    await world.work(await world.deducted(sale, ['u1']));
    const results: string[] = [];
    const request = { saleId: sale.saleId, apply: true, waitMs: 0, actor: 'ann' };
    const run = await world.reconcile.run(request, ({ outcome }) => results.push(outcome));
    expect([results, run.outcome]).to.deep.equal([['taken'], 'none']);
  });

  it('does not return `match` if the run compared nothing or only a part', async () => {
    const run = async (parts: { saleId?: string; signal?: AbortSignal }) =>
      (await world.reconcile.run({ apply: false, waitMs: 0, actor: 'ann', ...parts })).outcome;
    expect(await run({ saleId: '999' })).to.equal('none');
    expect(await run({ signal: AbortSignal.abort() })).to.equal('none');
    expect(await run({})).to.equal('match');
  });

  it('continues past a sale that cannot be compared, but ends the run in an outage', async () => {
    for (let sales = 0; sales < 5; sales++) await world.openSale();
    const away = (): never => {
      throw new OperationalError('redis', 'away', { retryable: true });
    };
    let measures = 0;
    world.read.beforeUnitsRead = () => (++measures === 2 ? away() : undefined);
    const run = await world.reconcile.run({ apply: false, waitMs: 0, actor: 'keeper' });
    expect(run).to.include({ salesCompared: 5, salesFailed: 1, outcome: 'partly' });
    world.read.beforeUnitsRead = away;
    const request = { apply: false, waitMs: 0, actor: 'keeper' };
    expect(await world.reconcile.run(request).catch((error: Error) => error.message)).to.equal('away');
    expect(world.runsRepository.runs.at(-1)).to.deep.include({ outcome: 'failed' });
    expect(world.runsRepository.runs.at(-1)?.figures).to.include({ salesFailed: 2 });
    const one = { ...request, saleId: sale.saleId };
    expect(await world.reconcile.run(one).catch((error: Error) => error.message)).to.equal('away');
  });

  it('selects sales that may sell or closed recently if no sale is named', async () => {
    const old = await world.openSale({ closesAtMs: 1 });
    world.mysql.putSale({ ...old, state: 'closed' });
    const run = await world.reconcile.run({ apply: false, waitMs: 0, actor: 'keeper' });
    expect(run).to.include({ salesCompared: 1, outcome: 'match' });
  });
});
