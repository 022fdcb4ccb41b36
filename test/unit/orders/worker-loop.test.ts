import { expect } from 'chai';
import sinon, { type SinonFakeTimers } from 'sinon';
import { pause } from '../../../src/core/after.js';
import { sealBatch, type Batch } from '../../../src/core/batch.js';
import { Bug, OperationalError } from '../../../src/core/errors.js';
import type { Sale } from '../../../src/core/sale.js';
import { TOPICS } from '../../../src/core/topics.js';
import type { WorkerLoop } from '../../../src/orders/worker-loop.js';
import { batchOf, freshSaleId, purchasesOf } from '../../helpers/sales.js';
import { ATTEMPTS_BEFORE_DEAD, LEASE_MS, mysqlDown, WorkerWorld } from './worker-world.js';

const MINUTE_MS = 60_000;

describe('worker-loop', () => {
  let timers: SinonFakeTimers;
  let world: WorkerWorld;
  let running: WorkerLoop | null;
  let started: boolean;
  beforeEach(async () => {
    timers = sinon.useFakeTimers({ now: Date.UTC(2026, 0, 1) });
    running = null;
    started = false;
    world = new WorkerWorld();
    await world.minter.renew();
  });
  afterEach(async () => {
    const stopped = running?.stop();
    await timers.tickAsync(30_000);
    await stopped;
    world.outage.shutdown();
  });

  /** Starts the loops and advances the clock by `ms`. */
  async function run(ms: number, parts: Parameters<WorkerWorld['worker']>[0] = {}): Promise<WorkerLoop> {
    running ??= world.worker(parts);
    if (!started) running.start();
    started = true;
    await timers.tickAsync(ms);
    return running;
  }

  it('records, marks and acks what it receives', async () => {
    const sale = await world.openSale();
    const batches = [batchOf(sale, purchasesOf('ann*2', 'bob')), batchOf(sale, purchasesOf('cid'))];
    for (const batch of batches) await world.place(batch);

    expect(await world.worker().runOnce()).to.equal(2);

    expect(world.verdicts).to.deep.equal(['recorded', 'recorded']);
    expect(world.unfinished).to.equal(0);
    expect((await world.mysql.find(sale.saleId))?.sold).to.equal(4);
    const bucket = world.store.bucket({ saleId: sale.saleId, bucket: 0 });
    expect([...bucket.requests.values()].map(({ state }) => state)).to.deep.equal(['ordered', 'ordered', 'ordered']);
    expect(bucket.pending.size).to.equal(0);
    expect(world.writes, 'one transaction').to.have.length(1);
  });

  describe('a batch of a recorded trace', () => {
    const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';
    const BATCH_SPAN = '00f067aa0ba902b7';
    const traced = (batch: Batch): Batch =>
      sealBatch({
        ...batch,
        traceparent: `00-${TRACE_ID}-${BATCH_SPAN}-01`,
        purchases: batch.purchases.map((purchase) => ({ ...purchase, traceId: TRACE_ID })),
      });

    it('gets a span for each delivery', async () => {
      const sale = await world.openSale();
      const batch = traced(batchOf(sale, purchasesOf('ann')));
      await world.place(batch);
      world.writeFails = mysqlDown('write', false);
      const worker = world.worker();
      await worker.runOnce();
      world.writeFails = null;
      await timers.tickAsync(10_000);
      await worker.runOnce();
      const deliveries = world.tracing.named('process seckill-purchase');
      expect(deliveries.map(({ ended, error }) => [ended, error])).to.deep.equal([
        [true, 'returned a message; the broker delivers it again'],
        [true, null],
      ]);
      expect(world.warnings).to.have.length(1);
      expect(world.warnings[0]).to.deep.include({ batchId: batch.batchId, traceIds: [TRACE_ID] });
    });

    it('ends its span with an error if it is parked, although its message is acked', async () => {
      const batch = traced(batchOf({ saleId: freshSaleId() }, purchasesOf('ann')));
      world.broker.publishRaw(TOPICS.purchase, batch.body, { topic: TOPICS.purchase });
      await world.worker().runOnce();
      expect([world.verdicts, world.unfinished]).to.deep.equal([['unknown_sale'], 0]);
      const [delivery] = world.tracing.named('process seckill-purchase');
      expect(delivery).to.include({ ended: true, error: 'parked as a dead letter: unknown_sale' });
    });
  });

  it('reports the age of a batch once, if the batch has a time of creation', async () => {
    const sale = await world.openSale();
    const batch = batchOf(sale, purchasesOf('ann', 'bob'));
    await world.place(batch);
    await timers.tickAsync(1500);
    await world.worker().runOnce();
    const ageMs = Date.now() - batch.createdAtMs;
    expect(world.agesMs).to.deep.equal({ received: [ageMs], recorded: [[2, ageMs]] });
    world.broker.publishRaw(TOPICS.purchase, batch.body, { topic: TOPICS.purchase });
    const undated = sealBatch({ ...batchOf(sale, purchasesOf('cid')), createdAtMs: 0 });
    await world.place(undated);
    await world.worker().runOnce();
    expect(world.agesMs.recorded, 'a second delivery and a batch without a time').to.have.length(1);
    expect(world.agesMs.received).to.have.length(2);
  });

  it('parks bad JSON, an unknown version and an unknown sale with their origin [M7]', async () => {
    const sale = await world.openSale();
    const strange = batchOf({ saleId: freshSaleId() }, purchasesOf('ann'));
    const good = batchOf(sale, purchasesOf('ann'));
    world.broker.publishRaw('seckill-purchase', '{', { topic: 'seckill-purchase', saleId: '7', batchId: 'b7' });
    world.broker.publishRaw('seckill-purchase', '{"v":99}');
    await world.place(strange);
    await world.place(good);
    world.store.bucket(strange).pending.set(strange.batchId, 0);

    await world.worker().runOnce();

    expect(
      world.deadLetters.deadLetters.map(({ reason, saleId, batchId, originTopic }) => [
        reason,
        saleId,
        batchId,
        originTopic,
      ]),
    ).to.deep.equal([
      ['undecodable', '7', 'b7', 'seckill-purchase'],
      ['unknown_version', null, null, 'seckill-purchase'],
      ['unknown_sale', strange.saleId, strange.batchId, 'seckill-purchase'],
    ]);
    expect(world.unfinished).to.equal(0);
    expect(world.store.bucket(strange).pending.size, 'out of pending').to.equal(0);
    expect(world.store.calls.release, 'its units stay held').to.equal(0);
    expect(world.mysql.allOrders).to.have.length(1);
  });

  it('retries a message that it cannot park at the moment', async () => {
    world.broker.publishRaw('seckill-purchase', '{');
    const park = sinon.stub(world.deadLetters, 'park').onFirstCall().rejects(mysqlDown('park')).callThrough();
    await run(MINUTE_MS);
    expect(park.callCount).to.equal(2);
    expect(world.unfinished).to.equal(0);
  });

  it('uses up no attempt during ten minutes without MySQL, then records all [D1]', async () => {
    const sale = await world.openSale();
    for (let i = 0; i < 40; i++) await world.place(batchOf(sale, purchasesOf(`u${i}`)));
    world.writeFails = mysqlDown('write');
    world.probeFails = true;
    await run(10_000);
    const receives = world.receives;
    expect(receives, 'each loop holds one receive').to.equal(2);
    const { length: writes } = world.writes;

    await timers.tickAsync(10 * MINUTE_MS);
    expect(world.receives).to.equal(receives);
    expect(world.writes.length, 'only the probe calls MySQL').to.equal(writes);

    world.writeFails = null;
    world.probeFails = false;
    await timers.tickAsync(MINUTE_MS);
    expect(world.mysql.allOrders).to.have.length(40);
    expect(world.unfinished).to.equal(0);
    expect(world.worstAttempt, 'no redelivery').to.equal(1);
    expect(world.deadLetters.deadLetters).to.deep.equal([]);
  });

  it('holds a late batch at its first attempt while its sale is in repair [R3, R10]', async () => {
    const [sale, other] = [await world.openSale(), await world.openSale()];
    const late = batchOf(sale, purchasesOf('ann'));
    await world.place(late);
    world.store.restart({ empty: true });
    for (const again of [other, sale]) await world.store.warm(again);
    await world.store.setState(other, 'open');
    world.mysql.putSale({ ...sale, epoch: 2 }); // a repair has begun its epoch but has not reopened the sale
    await world.place(batchOf(other, purchasesOf('bob')));
    await run(MINUTE_MS, { loops: 1 });
    expect(world.mysql.allOrders.map(({ userId }) => userId)).to.deep.equal(['bob']);
    expect([world.outage.isOver, world.unfinished]).to.deep.equal([true, 1]);

    world.store.bucket({ saleId: sale.saleId, bucket: 0 }).sale!.epoch = 2;
    await timers.tickAsync(MINUTE_MS);
    expect(world.mysql.allOrders.map(({ userId }) => userId)).to.deep.equal(['bob', 'ann']);
    expect([world.worstAttempt, world.unfinished]).to.deep.equal([1, 0]);
    expect(world.store.calls.reacquire).to.be.greaterThan(1);
  });

  describe('late batches of a sale in repair, one per receive', () => {
    let sale: Sale;
    let other: Sale;
    beforeEach(async () => {
      [sale, other] = [await world.openSale(), await world.openSale()];
    });

    /** Redis loses everything, the repair begins its epoch, and `count` batches of the previous epoch arrive. */
    async function comeLate(
      count: number,
      parts: Parameters<WorkerWorld['worker']>[0],
      isLoaded = true,
    ): Promise<void> {
      const late = Array.from({ length: count }, (_, nth) => batchOf(sale, purchasesOf(`late${nth}`)));
      world.store.restart({ empty: true });
      for (const again of isLoaded ? [other, sale] : [other]) await world.store.warm(again);
      await world.store.setState(other, 'open');
      world.mysql.putSale({ ...sale, epoch: 2 });
      for (const batch of late) {
        const { saleId, batchId, body } = batch;
        world.broker.publishRaw(TOPICS.purchase, body, { topic: TOPICS.purchase, saleId, batchId });
        await run(10_000, parts);
      }
      await world.place(batchOf(other, purchasesOf('bob')));
      await timers.tickAsync(10_000);
    }
    const rebuilt = async (): Promise<void> => {
      world.store.bucket({ saleId: sale.saleId, bucket: 0 }).sale!.epoch = 2;
      await timers.tickAsync(MINUTE_MS);
    };
    const users = (): string[] => world.mysql.allOrders.map(({ userId }) => userId);

    it('are held without using up attempts while the only loop serves other sales [R3, R10]', async () => {
      await comeLate(3, { loops: 1, renewMs: 10_000 });
      expect(users()).to.deep.equal(['bob']);
      await timers.tickAsync(10 * MINUTE_MS);
      expect([world.aside, world.unfinished]).to.deep.equal([3, 3]);
      await rebuilt();
      expect(users()).to.have.members(['bob', 'late0', 'late1', 'late2']);
      expect([world.aside, world.unfinished, world.worstAttempt]).to.deep.equal([0, 0, 1]);
    });

    it('are also held for a sale that the keeper has not yet loaded into Redis [R5]', async () => {
      await comeLate(3, { loops: 1, renewMs: 10_000 }, false);
      expect(users()).to.deep.equal(['bob']);
      await timers.tickAsync(10 * MINUTE_MS);
      expect([world.aside, world.unfinished]).to.deep.equal([3, 3]);
      await world.store.warm({ ...sale, epoch: 2 });
      await timers.tickAsync(MINUTE_MS);
      expect(users()).to.have.members(['bob', 'late0', 'late1', 'late2']);
      expect([world.aside, world.unfinished, world.worstAttempt]).to.deep.equal([0, 0, 1]);
    });

    it('are also held until the row of another batch exists, which the re-drive delivers [R4]', async () => {
      const late = batchOf(sale, purchasesOf('ann*2'));
      sale = { ...sale, epoch: 2 };
      world.store.restart({ empty: true });
      await world.store.warm(sale);
      await world.store.setState(sale, 'open');
      world.mysql.putSale(sale);
      const holder = batchOf(sale, purchasesOf('ann'));
      expect((await world.store.deduct(holder)).outcome).to.equal('deducted');
      const publish = ({ saleId, batchId, body }: Batch): void =>
        world.broker.publishRaw(TOPICS.purchase, body, { topic: TOPICS.purchase, saleId, batchId });
      publish(late);
      await run(10 * MINUTE_MS, { loops: 1, renewMs: 10_000 });
      expect([users(), world.aside]).to.deep.equal([[], 1]);
      publish(holder);
      await timers.tickAsync(MINUTE_MS);
      expect([users(), world.aside, world.unfinished, world.worstAttempt]).to.deep.equal([['ann'], 0, 0, 1]);
    });

    it('are skipped by the re-drive while they are set aside, and for at most a minute longer', async () => {
      await comeLate(3, { loops: 1, renewMs: 10_000 });
      const { redrives } = world.store.bucket({ saleId: sale.saleId, bucket: 0 });
      for (let minutes = 0; minutes < 10; minutes++) {
        await timers.tickAsync(MINUTE_MS);
        const leftMs = [...redrives.values()].map((untilMs) => untilMs - world.store.nowMs);
        expect(leftMs).to.have.length(3);
        for (const ms of leftMs) expect(ms).to.be.within(1, MINUTE_MS);
      }
    });

    it('are recorded even if Redis refuses to hold back the re-drive', async () => {
      world.store.leaveAlone = () => Promise.reject(new OperationalError('redis', 'away', { retryable: true }));
      await comeLate(2, { loops: 1, renewMs: 10_000 });
      expect(world.aside).to.equal(2);
      await rebuilt();
      expect(users()).to.have.members(['bob', 'late0', 'late1']);
    });

    it('are set aside up to a maximum number, after which the loop waits', async () => {
      await comeLate(3, { loops: 1, renewMs: 10_000, asideMax: 2 });
      expect([users(), world.aside]).to.deep.equal([[], 2]);
      await rebuilt();
      expect(users()).to.have.members(['bob', 'late0', 'late1', 'late2']);
      expect(world.worstAttempt).to.equal(1);
    });

    it('are given back by `stop`, or once they were held for the maximum time', async () => {
      await comeLate(2, { loops: 1, renewMs: 10_000, holdMaxMs: 2 * MINUTE_MS });
      await timers.tickAsync(3 * MINUTE_MS);
      expect(world.worstAttempt, 'delivered again').to.equal(2);
      const stopped = running?.stop();
      await timers.tickAsync(6_000);
      await stopped;
      expect(world.aside).to.equal(0);
      expect(world.verdicts.filter((verdict) => verdict === 'retry')).to.have.length(4);
    });
  });

  it('holds a batch on a full disk, and tries less and less often [D1]', async () => {
    const sale = await world.openSale();
    for (let i = 0; i < 20; i++) await world.place(batchOf(sale, purchasesOf(`u${i}`)));
    world.writeFails = mysqlDown('disk full');
    await run(5 * MINUTE_MS, { loops: 1 });
    expect(world.receives).to.equal(1);
    const rounds = new Set(world.writes.map(({ atMs }) => atMs));
    expect(rounds.size).to.be.within(10, 40);
    world.writeFails = null;
    await timers.tickAsync(MINUTE_MS);
    expect(world.mysql.allOrders).to.have.length(20);
    expect(world.worstAttempt).to.equal(1);
  });

  it('writes a refused batch alone, records its neighbours and keeps receiving', async () => {
    const sale = await world.openSale();
    const killer = batchOf(sale, purchasesOf('killer'));
    const write = world.repository.write.bind(world.repository);
    sinon.stub(world.repository, 'write').callsFake(async (plan) => {
      if (plan.orders.some(({ purchase }) => purchase.userId === 'killer')) throw mysqlDown('connection lost');
      return write(plan);
    });
    await world.place(killer);
    for (let i = 0; i < 5; i++) await world.place(batchOf(sale, purchasesOf(`u${i}`)));
    await run(MINUTE_MS);
    await world.place(batchOf(sale, purchasesOf('late')));
    await timers.tickAsync(MINUTE_MS);
    expect(world.mysql.allOrders.map(({ userId }) => userId)).to.have.members(['u0', 'u1', 'u2', 'u3', 'u4', 'late']);
    expect(world.unfinished).to.equal(1);

    await timers.tickAsync(120 * MINUTE_MS);
    expect(world.unfinished, 'given back in the end, and dead after its attempts').to.equal(0);
    expect(world.deadLetterBodies).to.deep.equal([killer.body]);
  });

  it('receives nothing while it has no lease for order ids [D8]', async () => {
    const sale = await world.openSale();
    await timers.tickAsync(LEASE_MS);
    await world.place(batchOf(sale, purchasesOf('ann')));
    await run(5 * MINUTE_MS, { loops: 1 });
    expect(world.receives).to.equal(0);
    await world.minter.renew();
    await timers.tickAsync(1000);
    expect(world.mysql.allOrders).to.have.length(1);
    expect(world.worstAttempt).to.equal(1);
  });

  it('keeps its deliveries until it may mint order ids, then records them [D8]', async () => {
    const sale = await world.openSale();
    await world.place(batchOf(sale, purchasesOf('ann')));
    const mint = sinon.stub(world.minter, 'mint').callsFake((userIds) =>
      userIds.length === 0 // the check that the loop makes before it receives
        ? { outcome: 'minted', orderIds: [] }
        : { outcome: 'refused', reason: 'no_lease', waitMs: 250 },
    );
    await run(5 * MINUTE_MS, { loops: 1 });
    expect(world.receives).to.equal(1);
    expect(world.mysql.allOrders).to.deep.equal([]);
    mint.restore();
    await timers.tickAsync(MINUTE_MS);
    expect(world.mysql.allOrders).to.have.length(1);
    expect(world.worstAttempt).to.equal(1);
  });

  it('uses up the attempts of a poison batch with growing pauses', async () => {
    const sale = await world.openSale();
    const { saleId, epoch } = sale;
    const purchases = [{ userId: 'ann', requestId: 'k', quantity: 1 }];
    const poison = sealBatch({
      batchId: 'poison',
      saleId,
      bucket: 0,
      epoch,
      createdAtMs: 0,
      traceparent: '',
      purchases,
    });
    const write = world.repository.write.bind(world.repository);
    sinon.stub(world.repository, 'write').callsFake(async (plan) => {
      if (plan.orders.some(({ batch }) => batch.batchId === 'poison')) {
        throw new OperationalError('mysql', 'ER_BAD_FIELD', {
          retryable: false,
          serverMessage: 'ER_BAD_FIELD: the whole message',
        });
      }
      return write(plan);
    });
    await world.place(poison);
    await world.place(batchOf(sale, purchasesOf('bob')));
    await run(1000);
    expect(world.mysql.allOrders.map(({ userId }) => userId)).to.deep.equal(['bob']);
    await timers.tickAsync(10 * MINUTE_MS);
    expect(world.attempts.filter((attempt) => attempt > 1)).to.deep.equal([2, 3, 4, 5, 6]);
    expect(world.deadLetterBodies, 'the worker parks it itself').to.deep.equal([]);
    expect(world.deadLetters.deadLetters).to.have.length(1);
    expect(world.deadLetters.deadLetters[0]).to.include({
      body: poison.body,
      reason: 'retries_exhausted',
      detail: 'poison: ER_BAD_FIELD: the whole message',
      attempts: 6,
    });
    expect(world.store.bucket(poison).pending.size, 'out of pending').to.equal(0);
  });

  it('makes the re-drive skip a refused batch from its first to its last retry', async () => {
    const sale = await world.openSale();
    const batch = batchOf(sale, purchasesOf('ann'));
    world.writeFails = mysqlDown('bad value', false);
    await world.place(batch);
    const terms = { olderThanMs: MINUTE_MS, leaseMs: 20_000, max: 10, fromMs: 0 };
    await run(0);
    for (let seconds = 0; seconds < 600; seconds++) {
      await timers.tickAsync(1_000);
      const { batches } = await world.store.takeDue(batch, terms);
      for (const { body } of batches) world.broker.publishRaw('seckill-purchase', body ?? '');
    }
    expect(world.deadLetters.deadLetters).to.have.length(1);
    expect(world.attempts, 'only the first message was delivered').to.deep.equal([1, 2, 3, 4, 5, 6]);
  });

  it('creates no second dead letter for a second message of a parked batch', async () => {
    const sale = await world.openSale();
    const batch = batchOf(sale, purchasesOf('ann'));
    world.writeFails = mysqlDown('bad value', false);
    await world.place(batch);
    world.broker.publishRaw('seckill-purchase', batch.body);
    await run(10 * MINUTE_MS);
    expect(world.deadLetters.deadLetters).to.have.length(1);
    expect(world.unfinished).to.equal(0);
  });

  it('loses no retry if Redis refuses to hold back the re-drive', async () => {
    const sale = await world.openSale();
    world.writeFails = mysqlDown('bad value', false);
    await world.place(batchOf(sale, purchasesOf('ann')));
    world.store.breakNext('leave_alone_fails');
    await run(10 * MINUTE_MS);
    expect(world.attempts).to.deep.equal([1, 2, 3, 4, 5, 6]);
    expect(world.bugs).to.deep.equal([]);
  });

  it('keeps the rows if Redis is down at the mark, and marks them on redelivery', async () => {
    const sale = await world.openSale();
    const batch = batchOf(sale, purchasesOf('ann'));
    await world.place(batch);
    world.store.breakNext('mark_recorded_fails', 'mark_recorded_reply_lost');
    await run(MINUTE_MS);
    expect(world.verdicts).to.deep.equal([
      'recorded',
      'not_marked',
      'already_recorded',
      'not_marked',
      'already_recorded',
    ]);
    expect(world.store.bucket(batch).requests.get('ann/k1')?.state).to.equal('ordered');
    expect(world.unfinished).to.equal(0);
    expect((await world.mysql.find(sale.saleId))?.sold).to.equal(1);
  });

  it('leaves recorded batches in pending for the keeper if Redis is down for long', async () => {
    const sale = await world.openSale();
    const batch = batchOf(sale, purchasesOf('ann'));
    await world.place(batch);
    const markRecorded = sinon.stub(world.store, 'markRecorded').rejects(mysqlDown('redis'));
    await run(10 * MINUTE_MS);
    expect(markRecorded.callCount).to.equal(ATTEMPTS_BEFORE_DEAD);
    expect(world.unfinished).to.equal(0);
    expect(world.deadLetterBodies).to.deep.equal([]);
    expect([...world.store.bucket(batch).pending.keys()]).to.deep.equal([batch.batchId]);
  });

  it('marks other sales and keeps looping while a Redis server does not answer [R8]', async () => {
    const [hung, well] = [await world.openSale(), await world.openSale()];
    const markRecorded = world.store.markRecorded.bind(world.store);
    sinon.stub(world.store, 'markRecorded').callsFake(async (recorded) => {
      if (recorded.every(({ batch }) => batch.saleId !== hung.saleId)) return markRecorded(recorded);
      await pause(1500);
      throw new OperationalError('redis', 'no answer', { retryable: true });
    });
    const left = (): number => world.store.bucket({ saleId: well.saleId, bucket: 0 }).pending.size;
    for (const sale of [hung, well]) await world.place(batchOf(sale, purchasesOf('ann')));
    await run(50, { loops: 1 });
    expect([left(), world.unfinished], 'of the same transaction').to.deep.equal([0, 1]);
    await world.place(batchOf(well, purchasesOf('bob')));
    await timers.tickAsync(350);
    expect([left(), world.unfinished], 'of the next transaction').to.deep.equal([0, 1]);
    expect(world.verdicts).to.deep.equal(['recorded', 'recorded', 'recorded']);
    await timers.tickAsync(1500);
    expect(world.verdicts.slice(3), 'redelivered, or marked by the keeper').to.include('not_marked');
    expect(world.bugs).to.deep.equal([]);
  });

  it('waits for a running mark when stopped', async () => {
    const sale = await world.openSale();
    const markRecorded = world.store.markRecorded.bind(world.store);
    sinon.stub(world.store, 'markRecorded').callsFake(async (recorded) => {
      await pause(1000);
      return markRecorded(recorded);
    });
    await world.place(batchOf(sale, purchasesOf('ann')));
    const loop = await run(500);
    let isStopped = false;
    const stopped = loop.stop().then(() => (isStopped = true));
    await timers.tickAsync(300);
    expect(isStopped).to.equal(false);
    await timers.tickAsync(10_000);
    await stopped;
    expect(world.unfinished).to.equal(0);
  });

  it('counts messages that needed a check-back', async () => {
    const sale = await world.openSale();
    const batch = batchOf(sale, purchasesOf('ann'));
    await world.store.deduct(batch);
    const channel = world.broker.purchaseChannel(async () => 'commit', TOPICS.purchase);
    await channel.sendHalf(batch);
    await timers.tickAsync(11_000);
    await world.broker.runChecks();
    await world.worker().runOnce();
    expect(world.checkedBack).to.equal(1);
  });

  it('continues after a failed receive, and does not spin if a receive returns at once', async () => {
    const sale = await world.openSale();
    await world.place(batchOf(sale, purchasesOf('ann')));
    world.broker.breakNext('receive_fails', 'receive_fails');
    running = world.worker({ loops: 1 }, 0);
    await run(10_000);
    expect(world.mysql.allOrders).to.have.length(1);
    const before = world.receives;
    await timers.tickAsync(MINUTE_MS);
    expect(world.receives - before).to.be.within(40, 80);
  });

  it('keeps a delivery while a slow MySQL writes it, without using up an attempt [D2]', async () => {
    const sale = await world.openSale();
    await world.place(batchOf(sale, purchasesOf('ann')));
    const write = world.repository.write.bind(world.repository);
    sinon.stub(world.repository, 'write').callsFake(async (plan) => {
      await pause(2 * MINUTE_MS); // four times as long as a delivery stays with its receiver
      return write(plan);
    });
    await run(3 * MINUTE_MS, { renewMs: 10_000 });
    expect(world.verdicts).to.deep.equal(['recorded']);
    expect([world.unfinished, world.worstAttempt]).to.deep.equal([0, 1]);
  });

  it('reports a bug and acks nothing', async () => {
    const sale = await world.openSale();
    await world.place(batchOf(sale, purchasesOf('ann')));
    sinon.stub(world.repository, 'write').rejects(new Bug('a bug'));
    await run(1000);
    expect(world.bugs.map(String)).to.deep.equal(['Bug: a bug']);
    expect(world.unfinished).to.equal(1);
  });

  it('finishes the work in hand when stopped, and receives no more', async () => {
    const sale = await world.openSale();
    const worker = await run(1000);
    await world.place(batchOf(sale, purchasesOf('ann')));
    const stopped = worker.stop();
    await timers.tickAsync(6000); // the open receives return
    await stopped;
    const receives = world.receives;
    await timers.tickAsync(MINUTE_MS);
    expect(world.receives).to.equal(receives);
  });

  it('gives held deliveries back soon when stopped during an outage', async () => {
    const sale = await world.openSale();
    await world.place(batchOf(sale, purchasesOf('ann')));
    world.writeFails = mysqlDown('write');
    world.probeFails = true;
    const worker = await run(10_000);
    const stopped = worker.stop();
    await timers.tickAsync(0);
    await stopped;
    await timers.tickAsync(5000);
    world.writeFails = null;
    expect(await world.worker().runOnce(), 'another worker has it').to.equal(1);
    expect(world.mysql.allOrders).to.have.length(1);
  });

  it('does not wait for ever for a hanging loop when stopped', async () => {
    const sale = await world.openSale();
    await world.place(batchOf(sale, purchasesOf('ann')));
    sinon.stub(world.repository, 'write').returns(new Promise(() => undefined));
    const worker = await run(1000, { stopMaxMs: 2000 });
    const stopped = worker.stop();
    await timers.tickAsync(2000);
    await stopped;
  });
});
