import { expect } from 'chai';
import { OperationalError } from '../../../../src/core/errors.js';
import type { RequestEntry } from '../../../../src/core/outcome.js';
import type { Sale } from '../../../../src/core/sale.js';
import { ATTEMPTS_MAX } from '../../../../src/operate/reconcile/compensate.js';
import { OPTIONS, ReconcileWorld } from './reconcile-world.js';

const entryOf = (quantity: number): RequestEntry => ({ state: 'ordered', orderId: '9', quantity });

describe('compensate', () => {
  let world: ReconcileWorld;
  let sale: Sale;
  beforeEach(async () => {
    world = new ReconcileWorld();
    sale = await world.openSale({ stock: 100, limitPerBuyer: 5 });
  });
  const bucket = () => world.store.bucket({ saleId: sale.saleId, bucket: 0 });
  const age = (): void => world.clock.advance(OPTIONS.safeAgeMs);
  const states = (): string[] => world.jobs.jobs.map(({ kind, state }) => `${kind} ${state}`);
  /** Advances to the next attempt and runs it. */
  const attempt = async (): Promise<void> => {
    world.clock.advance(OPTIONS.retryFirstMs * 2 ** ATTEMPTS_MAX);
    await world.compensate();
  };
  const setState = async (state: 'paused' | 'closed'): Promise<void> => {
    world.mysql.putSale({ ...(world.mysql.saleOf(sale.saleId) as Sale), state });
    await world.store.setState(sale, state);
  };

  it("publishes the batch of a leak once, and finishes after the worker's rows", async () => {
    const batch = await world.stray(sale, ['u1', 'u2']);
    world.onPublish = (again) => world.work(again);
    await world.found(sale.saleId, true);
    await world.compensate();
    expect(states()).to.deep.equal(['leak compensated', 'leak compensated']);
    expect(world.publishedIds).to.deep.equal([batch.batchId]);
    expect(await world.found(sale.saleId)).to.deep.equal([]);
  });

  it('republishes only the affected purchase if the body of its batch is lost', async () => {
    const { batchId } = await world.deducted(sale, ['u1*2', 'u2']);
    bucket().markers.delete(batchId);
    world.onPublish = (again) => world.work(again);
    age();
    await world.found(sale.saleId, true);
    await world.compensate();
    expect(states()).to.deep.equal(['leak compensated', 'leak compensated']);
    expect(world.publishedIds).to.deep.equal([batchId, batchId]);
    expect(world.mysql.allOrders.map(({ userId, quantity }) => `${userId} ${quantity}`)).to.have.members([
      'u1 2',
      'u2 1',
    ]);
    expect(await world.found(sale.saleId)).to.deep.equal([]);
  });

  it('writes a failed row after five attempts, and returns its units once', async () => {
    const batch = await world.stray(sale, ['u1']);
    await world.found(sale.saleId, true);
    const dueMs: number[] = [];
    for (let n = 1; n <= ATTEMPTS_MAX; n++) {
      await attempt();
      dueMs.push(Number(world.jobs.jobs[0]?.availableAtMs) - world.clock.nowMs());
    }
    expect(dueMs).to.deep.equal([1, 2, 4, 8, 16].map((factor) => factor * OPTIONS.retryFirstMs));
    expect(states()).to.deep.equal(['leak pending']);
    await attempt();
    expect(states()).to.deep.equal(['leak failed_final']);
    expect(world.publishedIds).to.have.length(ATTEMPTS_MAX);
    expect(world.rowsOf(batch).map(({ reason }) => reason)).to.deep.equal(['compensation_failed']);
    await world.releaseUnits();
    expect([bucket().unitsLeft, bucket().pending.size]).to.deep.equal([100, 0]);
    expect(await world.found(sale.saleId, true)).to.deep.equal([]);
  });

  it('releases nothing for a purchase whose order a late worker writes first [C2]', async () => {
    const batch = await world.stray(sale, ['u1', 'u2']);
    await world.found(sale.saleId, true);
    for (let n = 1; n <= ATTEMPTS_MAX; n++) await attempt();
    expect(world.publishedIds, 'one message for both').to.have.length(ATTEMPTS_MAX);
    const findRows = world.mysql.findByPurchases.bind(world.mysql);
    let late = true;
    world.mysql.findByPurchases = async (saleId, purchases) => {
      const rows = await findRows(saleId, purchases);
      if (late) {
        late = false; // between the read and the write of the compensation
        await world.recorded({ ...batch, purchases: batch.purchases.slice(0, 1) });
      }
      return rows;
    };
    await attempt();
    const rows = world.rowsOf(batch).map(({ userId, state }) => `${userId} ${state}`);
    expect(rows).to.have.members(['u1 pending_payment', 'u2 failed']);
    expect(states()).to.deep.equal(['leak compensated', 'leak failed_final']);
    await world.releaseUnits();
    expect(bucket().unitsLeft).to.equal(99);
  });

  it('returns the units once after a crash between the failed row and the mark [C3]', async () => {
    await world.stray(sale, ['u1']);
    await world.found(sale.saleId, true);
    for (let n = 1; n <= ATTEMPTS_MAX; n++) await attempt();
    const { failed } = world.jobs;
    world.jobs.failed = () => Promise.reject(new OperationalError('mysql', 'dies here', { retryable: true }));
    await attempt().catch(() => undefined);
    world.jobs.failed = failed;
    expect(states()).to.deep.equal(['leak pending']);
    await world.releaseUnits();
    await attempt();
    expect(states()).to.deep.equal(['leak failed_final']);
    await world.releaseUnits();
    expect(bucket().unitsLeft).to.equal(100);
  });

  it('uses up no attempt in an outage, and calls the failed server once per pass', async () => {
    for (const user of ['u1', 'u2']) await world.stray(sale, [user]);
    let met = 0;
    world.onPublish = () => {
      met++;
      return Promise.reject(new OperationalError('rocketmq', 'away', { retryable: true }));
    };
    await world.found(sale.saleId, true);
    for (let n = 1; n <= 2 * ATTEMPTS_MAX; n++) await attempt();
    for (const job of world.jobs.jobs) expect(job).to.include({ state: 'pending', attempts: 0, lastError: 'away' });
    expect(met).to.equal(2 * ATTEMPTS_MAX);
  });

  it('calls Redis once per pass for an unreachable sale, and does the jobs of other sales', async () => {
    world.onPublish = (again) => world.work(again);
    const other = await world.openSale({ stock: 100 });
    for (let nth = 0; nth < 5; nth++) await world.stray(sale, [`u${nth}`]);
    await world.stray(other, ['v']);
    for (const { saleId } of [sale, other]) await world.found(saleId, true);
    let met = 0;
    const statusOf = world.repairs.statusOf.bind(world.repairs);
    world.repairs.statusOf = (refs) => {
      if (refs[0]?.saleId !== sale.saleId) return statusOf(refs);
      met++;
      return Promise.reject(new OperationalError('redis', 'away', { retryable: true }));
    };
    await attempt();
    const ofOther = world.jobs.jobs.filter(({ saleId }) => saleId === other.saleId);
    expect(ofOther.map(({ state }) => state)).to.deep.equal(['compensated']);
    expect(met).to.equal(1);
    world.repairs.statusOf = statusOf;
    await attempt();
    const ends = world.jobs.jobs.map(({ state, attempts }) => [state, attempts]);
    expect(ends, 'no attempt was used up').to.deep.equal(Array(6).fill(['compensated', 0]));
  });

  it('calls Redis three times per pass, not once per sale, if no sale is reachable', async () => {
    const sales = [sale, ...(await Promise.all([1, 2, 3, 4].map(() => world.openSale({ stock: 100 }))))];
    for (const one of sales) {
      await world.stray(one, ['u1']);
      await world.found(one.saleId, true);
    }
    let met = 0;
    world.repairs.statusOf = () => {
      met++;
      return Promise.reject(new OperationalError('redis', 'away', { retryable: true }));
    };
    await attempt();
    expect(met).to.equal(3);
  });

  it('sets Redis to the state of the row for not_marked and unreleased', async () => {
    const [live, ended] = [await world.deducted(sale, ['u1', 'u2']), await world.deducted(sale, ['u3'])];
    await world.recorded(live);
    const [endedId] = await world.recorded(ended, ['u3']);
    for (const row of world.mysql.outbox.undone('release')) await world.mysql.outbox.markDone([row.id]);
    age();
    await world.found(sale.saleId, true);
    await world.compensate();
    expect(new Set(states())).to.deep.equal(new Set(['not_marked compensated', 'unreleased compensated']));
    expect(bucket().requests.get('u1/k1')?.state).to.equal('ordered');
    expect(bucket().requests.get('u3/k1')).to.deep.equal({ state: 'released', orderId: endedId, quantity: 1 });
    expect(bucket().unitsLeft).to.equal(98);
    expect(await world.found(sale.saleId)).to.deep.equal([]);
  });

  it('republishes a batch, instead of marking it recorded, while a purchase has no row', async () => {
    const batch = await world.stray(sale, ['u1', 'u2']);
    await world.recorded({ ...batch, purchases: batch.purchases.slice(0, 1) });
    age();
    expect(await world.found(sale.saleId, true)).to.have.members(['not_marked u1', 'leak u2']);
    world.onPublish = async () => undefined;
    await world.compensate();
    expect(bucket().marker(batch.batchId, world.clock.nowMs())).to.deep.include({ body: batch.body });
    await world.recorded({ ...batch, purchases: batch.purchases.slice(1) });
    await world.publishNotifications();
    await attempt();
    expect(states()).to.have.members(['not_marked compensated', 'leak compensated']);
    expect(await world.found(sale.saleId)).to.deep.equal([]);
  });

  it('adjusts the stock of a paused sale, but never of an open sale [C5]', async () => {
    bucket().unitsLeft += 2;
    expect(await world.found(sale.saleId, true)).to.deep.equal(['drift -2']);
    expect(states()).to.deep.equal([]);
    await setState('paused');
    await world.found(sale.saleId, true);
    await world.compensate();
    expect([states(), bucket().unitsLeft]).to.deep.equal([['drift compensated'], 100]);
    expect(world.jobs.audited.map(({ action, before, after }) => [action, before, after])[1]).to.deep.equal([
      'ledger.adjust',
      { bucket: 0, unitsLeft: 102 },
      { bucket: 0, unitsLeft: 100 },
    ]);
  });

  it('does not touch a sale that was opened again, and uses up no attempt [C5]', async () => {
    bucket().unitsLeft += 2;
    await setState('paused');
    await world.found(sale.saleId, true);
    world.mysql.putSale({ ...sale, state: 'open' });
    for (let n = 1; n <= 2 * ATTEMPTS_MAX; n++) await attempt();
    expect([states(), bucket().unitsLeft]).to.deep.equal([['drift pending'], 102]);
  });

  it('makes a stuck outbox row due at once, and finishes when it is published', async () => {
    const { saleId } = sale;
    const units = { bucket: 0, userId: 'u9', requestId: 'k1', orderId: '1', batchId: '', withUnits: true };
    const outboxId = world.mysql.outbox.add('release', 'b', [{ saleId, ...units }]);
    await world.mysql.outbox.postpone([outboxId], 1e12);
    world.clock.advance(OPTIONS.outboxAgeMs);
    expect(await world.found(saleId, true)).to.deep.equal(['stuck_outbox']);
    await world.compensate();
    expect(await world.mysql.outbox.lease('release', 1, 1)).to.have.length(1);
    await world.mysql.outbox.markDone([outboxId]);
    await attempt();
    expect(states()).to.deep.equal(['stuck_outbox compensated']);
  });

  it('removes stale markers [C7]', async () => {
    const batch = await world.deducted(sale, ['u1']);
    await world.work(batch);
    await setState('closed');
    await world.publishNotifications();
    world.clock.advance(OPTIONS.markerAgeMs);
    await world.found(sale.saleId, true);
    await world.compensate();
    expect([states(), bucket().markers.size]).to.deep.equal([['stale_marker compensated'], 0]);
    expect(await world.found(sale.saleId)).to.deep.equal([]);
  });

  it('never publishes or gives up a batch that the re-drive handles [M8]', async () => {
    const batch = await world.stray(sale, ['u1', 'u2']);
    await world.found(sale.saleId, true);
    await world.store.unpark(batch); // an operator replays it
    for (let n = 1; n <= 2 * ATTEMPTS_MAX; n++) await attempt();
    for (const job of world.jobs.jobs) expect(job).to.include({ state: 'pending', attempts: 0 });
    expect([world.publishedIds, world.rowsOf(batch)]).to.deep.equal([[], []]);
    await world.work(batch);
    await attempt();
    expect(states()).to.deep.equal(['leak compensated', 'leak compensated']);
  });

  it('neither publishes nor fails a parked batch until an operator decides [M8]', async () => {
    const batch = await world.stray(sale, ['u1']);
    await world.found(sale.saleId, true);
    for (let n = 1; n <= ATTEMPTS_MAX; n++) await attempt();
    await world.parkDeadLetter(batch); // its last attempt at the worker
    for (let n = 1; n <= ATTEMPTS_MAX; n++) await attempt();
    expect(world.jobs.jobs[0]).to.include({ state: 'pending', attempts: ATTEMPTS_MAX });
    expect(world.jobs.jobs[0]?.lastError).to.contain('parked');
    expect([world.publishedIds.length, world.rowsOf(batch)]).to.deep.equal([ATTEMPTS_MAX, []]);
  });

  it('does not publish a batch with missing rows while its dead letter is parked [M8]', async () => {
    const batch = await world.stray(sale, ['u1', 'u2']);
    await world.recorded({ ...batch, purchases: batch.purchases.slice(0, 1) });
    await world.parkDeadLetter(batch);
    age();
    expect(await world.found(sale.saleId, true)).to.deep.equal(['not_marked u1']);
    for (let n = 1; n <= 2 * ATTEMPTS_MAX; n++) await attempt();
    expect([states(), world.publishedIds]).to.deep.equal([['not_marked pending'], []]);
  });

  it('uses up no attempt of a job if its keeper dies, and continues past a bug [C3]', async () => {
    for (const user of ['u1', 'u2', 'u3']) await world.stray(sale, [user]);
    await world.found(sale.saleId, true);
    const { done, postpone } = world.jobs;
    world.jobs.postpone = () => Promise.reject(new OperationalError('mysql', 'dies here', { retryable: true }));
    await world.compensate().catch(() => undefined);
    world.jobs.postpone = postpone;
    expect(world.jobs.jobs.map(({ attempts }) => attempts)).to.deep.equal([0, 0, 0]);
    expect(await world.jobs.claim({ max: 9, leaseMs: 0 }), 'the others are due').to.have.length(2);

    world.onPublish = (batch) => world.work(batch);
    world.jobs.done = (jobId, ...rest) => {
      return jobId === '2' ? Promise.reject(new Error('a bug')) : done.call(world.jobs, jobId, ...rest);
    };
    const error = await attempt().catch((caught: Error) => caught.message);
    expect(error).to.equal('a bug');
    world.jobs.done = done;
    expect(states()).to.deep.equal(['leak compensated', 'leak pending', 'leak compensated']);
    expect(world.jobs.jobs[1]).to.include({ attempts: 0, lastError: 'Error: a bug' });
  });

  it('adjusts no stock in part, or if buyers contradict their requests [D6]', async () => {
    await setState('paused');
    bucket().unitsLeft = 3;
    await world.found(sale.saleId, true); // 97 units too few
    world.read.buyersCountError = 7;
    await world.compensate();
    expect([bucket().unitsLeft, world.jobs.jobs[0]?.lastError]).to.deep.equal([
      3,
      'the units of the buyers differ from the units of their requests; a person must decide',
    ]);
    world.read.buyersCountError = 0;
    for (let unit = 0; unit < 120; unit++) bucket().requests.set(`x/${unit}`, entryOf(1)); // 120 units, changed by hand
    await attempt();
    expect(bucket().unitsLeft, '23 too many, 3 left').to.equal(3);
    expect(world.jobs.jobs[0]).to.include({ state: 'pending', attempts: 2 });
    expect(world.jobs.jobs[0]?.lastError).to.contain('no bucket has enough left');
  });

  it('retries a job that was given up, unless the row of its purchase is final', async () => {
    const batch = await world.stray(sale, ['u1']);
    await world.found(sale.saleId, true);
    await world.jobs.failed('1', 'keeper', 'Redis says that it became an order, but MySQL has no order');
    expect(await world.reconcile.retry('1', 'ann')).to.equal('retried');
    for (let n = 1; n <= ATTEMPTS_MAX + 1; n++) await attempt();
    expect(world.rowsOf(batch)).to.have.length(1);
    expect(await world.reconcile.retry('1', 'ann')).to.equal('not_retryable');
    expect(await world.reconcile.retry('2', 'ann')).to.equal('not_found');
  });
});
