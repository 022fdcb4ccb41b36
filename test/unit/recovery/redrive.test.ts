import { expect } from 'chai';
import { OperationalError } from '../../../src/core/errors.js';
import type { Sale } from '../../../src/core/sale.js';
import { TOPICS } from '../../../src/core/topics.js';
import type { Job } from '../../../src/core/job.js';
import type { RedriveChannel } from '../../../src/core/ports/channels.js';
import { redrive } from '../../../src/recovery/redrive.js';
import { sealBatch } from '../../../src/core/batch.js';
import { MemoryTracing } from '../../helpers/memory/memory-tracing.js';
import { batchOf, purchaseOf } from '../../helpers/sales.js';
import { KeeperWorld } from '../orders/keeper-world.js';

const AFTER_MS = 60_000;
const MAX = 5;
const LEASE_MS = 20_000;

describe('keeper: redrive', () => {
  let world: KeeperWorld;
  let job: Job;
  let sale: Sale;

  beforeEach(async () => {
    world = new KeeperWorld();
    job = create();
    sale = await world.openSale();
  });

  /** Creates a keeper that has just started. */
  const create = (channel = world.broker.redriveChannel(), max = MAX): Job => {
    const { mysql, store, clock, log, metrics } = world;
    const ports = { sales: mysql, store, channel, clock, log, metrics };
    return redrive(ports, { afterMs: AFTER_MS, max });
  };
  const published = (): readonly string[] => world.broker.published(TOPICS.redrive);

  it('republishes a batch unchanged if it is not marked as recorded [M2]', async () => {
    const batch = await world.deducted(sale, ['u1', 'u2*2']);
    world.clock.advance(AFTER_MS);
    await job.runOnce();
    expect(published()).to.deep.equal([batch.body]);
    expect(world.counts.redriven).to.equal(1);
  });

  it('records a span below that of a traced batch and logs its trace ids', async () => {
    const tracing = new MemoryTracing();
    const lines: object[] = [];
    const { mysql, store, clock, metrics } = world;
    const log = { ...world.log, info: (fields: object) => void lines.push(fields) };
    const channel = world.broker.redriveChannel();
    const traceId = 'a'.repeat(32);
    const batch = sealBatch({
      ...batchOf(sale, [{ ...purchaseOf('u1'), traceId }]),
      traceparent: `00-${traceId}-${'b'.repeat(16)}-01`,
    });
    await store.deduct(batch);
    await world.deducted(sale, ['u2']);
    clock.advance(AFTER_MS);
    const ports = { sales: mysql, store, channel, tracing, clock, log, metrics };
    await redrive(ports, { afterMs: AFTER_MS, max: MAX }).runOnce();
    expect(published()).to.have.length(2);
    expect(tracing.spans).to.have.length(1);
    expect(tracing.spans[0]).to.deep.include({ name: 'publish batch again', parentId: 'b'.repeat(16), ended: true });
    expect(tracing.spans[0]?.fields['seckill.batch']).to.equal(batch.batchId);
    expect(lines).to.have.length(2);
    expect(lines[0]).to.deep.include({ batchId: batch.batchId, traceIds: [traceId] });
    expect(lines[1]).not.to.have.property('traceIds');
  });

  it('does not touch young, recorded and parked batches', async () => {
    const recorded = await world.deducted(sale, ['u1']);
    const parked = await world.deducted(sale, ['u2']);
    world.clock.advance(AFTER_MS - 1);
    await world.deducted(sale, ['u3']);
    await world.store.markRecorded([{ batch: recorded, orders: [] }]);
    await world.store.park(parked);
    world.clock.advance(1);
    await job.runOnce();
    expect(published()).to.deep.equal([]);
  });

  it('publishes a batch at growing intervals, up to sixteen times the first [M11]', async () => {
    await world.deducted(sale, ['u1']);
    world.clock.advance(AFTER_MS);
    const atMinutes: number[] = [];
    for (let minute = 0; minute < 100; minute++) {
      const before = published().length;
      await job.runOnce();
      if (published().length > before) atMinutes.push(minute);
      world.clock.advance(60_000);
    }
    expect(atMinutes).to.deep.equal([0, 1, 3, 7, 15, 31, 47, 63, 79, 95]);
  });

  it('publishes a limited number of batches per run, oldest first [M11]', async () => {
    const bodies = [];
    for (let i = 0; i < 12; i++) {
      bodies.push((await world.deducted(sale, [`u${i}`])).body);
      world.clock.advance(10);
    }
    world.clock.advance(AFTER_MS);
    for (const count of [5, 10, 12, 12]) {
      await job.runOnce();
      expect(published()).to.deep.equal(bodies.slice(0, count));
    }
  });

  it('applies the limit over all sales and buckets together', async () => {
    const other = await world.openSale({ buckets: 2 });
    for (let i = 0; i < 3; i++) {
      await world.deducted(sale, [`u${i}`]);
      await world.deducted(other, [`u${i}`], 0);
      await world.deducted(other, [`v${i}`], 1);
    }
    world.clock.advance(AFTER_MS);
    await job.runOnce();
    expect(published()).to.have.length(MAX);
    await job.runOnce();
    expect(published()).to.have.length(9);
  });

  it('checks closed sales too, because their batches may still be under way', async () => {
    const batch = await world.deducted(sale, ['u1']);
    await world.store.setState(sale, 'closed');
    world.mysql.putSale({ ...sale, state: 'closed' });
    world.clock.advance(AFTER_MS);
    await job.runOnce();
    expect(published()).to.deep.equal([batch.body]);
  });

  it('publishes a failed batch again when its lease is over', async () => {
    const batches = [];
    for (const user of ['u1', 'u2', 'u3']) {
      batches.push((await world.deducted(sale, [user])).body);
      world.clock.advance(1);
    }
    const [first, second, third] = batches;
    world.clock.advance(AFTER_MS);
    let sent = 0;
    const inner = world.broker.redriveChannel();
    const failing = create(
      {
        ...inner,
        publish: async (batch) => {
          if (++sent === 2) world.broker.breakNext('publish_fails');
          return inner.publish(batch);
        },
      },
      100,
    );
    expect(await failing.runOnce().catch((error: Error) => error.name)).to.equal('OperationalError');
    expect(published()).to.deep.equal([first, third]);
    world.clock.advance(LEASE_MS - 1);
    await job.runOnce();
    expect(published()).to.have.length(2);
    world.clock.advance(1);
    await job.runOnce();
    expect(published()).to.deep.equal([first, third, second]);
    expect(world.counts.redriven).to.equal(3);
  });

  /** Creates a broker that refuses some batches. */
  function refusing(isRefused: (batchId: string) => boolean) {
    const inner = world.broker.redriveChannel();
    let tries = 0;
    const publish: RedriveChannel['publish'] = async (batch) => {
      tries++;
      if (isRefused(batch.batchId)) throw new OperationalError('rocketmq', 'refused', { retryable: true });
      return inner.publish(batch);
    };
    return { channel: { ...inner, publish }, tried: () => tries };
  }

  it('publishes the batches of other sales if the broker refuses one batch', async () => {
    const bodies: string[] = [];
    for (let sales = 0; sales < 9; sales++) {
      bodies.push((await world.deducted(await world.openSale(), ['u1'])).body); // more buckets than work at once
    }
    const bad = await world.deducted(await world.openSale(), ['u1']); // the newest sale comes first
    world.clock.advance(AFTER_MS);
    const { channel } = refusing((batchId) => batchId === bad.batchId);
    expect(
      await create(channel, 100)
        .runOnce()
        .catch((error: Error) => error.message),
    ).to.equal('refused');
    expect([...published()].sort()).to.deep.equal(bodies.sort());
  });

  it('ends the run soon if the broker accepts nothing, and keeps every batch due', async () => {
    for (let sales = 0; sales < 60; sales++) await world.deducted(await world.openSale(), ['u1']);
    world.clock.advance(AFTER_MS);
    const { channel, tried } = refusing(() => true);
    const message = await create(channel, 1000)
      .runOnce()
      .catch((error: Error) => error.message);
    expect(message).to.match(/^refused; 3\d batches in total were not published$/);
    expect(tried()).to.be.lessThan(40);
  });

  it('does not touch batches that another keeper has taken or published', async () => {
    const bodies = [];
    for (let i = 0; i < 2 * MAX; i++) bodies.push((await world.deducted(sale, [`u${i}`])).body);
    world.clock.advance(AFTER_MS);
    const [one, two] = [create(), create()];
    await Promise.all([one.runOnce(), two.runOnce()]);
    await one.runOnce();
    await two.runOnce();
    expect(published()).to.have.length(2 * MAX);
    expect(published()).to.have.members(bodies);
  });

  it('publishes the batches of a dead keeper', async () => {
    const { body } = await world.deducted(sale, ['u1']);
    world.clock.advance(AFTER_MS);
    const terms = { olderThanMs: AFTER_MS, leaseMs: LEASE_MS, max: 5, fromMs: 0 };
    expect((await world.store.takeDue({ ...sale, bucket: 0 }, terms)).batches).to.have.length(1);
    await job.runOnce();
    expect(published()).to.deep.equal([]);
    world.clock.advance(LEASE_MS);
    await job.runOnce();
    expect(published()).to.deep.equal([body]);
  });

  it('does not touch a batch while a consumer keeps trying it', async () => {
    const { batchId } = await world.deducted(sale, ['u1']);
    world.clock.advance(AFTER_MS);
    await world.store.leaveAlone({ ...sale, bucket: 0 }, [{ batchId, forMs: 90_000 }]);
    world.clock.advance(90_000 - 1);
    await job.runOnce();
    expect(published()).to.deep.equal([]);
    world.clock.advance(1);
    await job.runOnce();
    expect(published()).to.have.length(1);
  });

  it('publishes batches of other sales in time despite very many batches of one sale', async () => {
    const others = [sale, await world.openSale(), await world.openSale()];
    const busy = await world.openSale(); // the newest sale comes first
    for (let i = 0; i < 20 * MAX; i++) await world.deducted(busy, [`u${i}`]);
    const bodies = [];
    for (const other of others) bodies.push((await world.deducted(other, ['u1'])).body);
    world.clock.advance(AFTER_MS);
    for (let runs = 0; runs < 4; runs++) await job.runOnce();
    expect(published()).to.include.members(bodies);
  });

  it('does not count buckets of a silent server against the limit of a run', async () => {
    const many = await world.openSale({ buckets: 8 });
    for (let bucket = 0; bucket < 8; bucket++) await world.deducted(many, [`u${bucket}`], bucket);
    const { body } = await world.deducted(sale, ['u1']);
    world.clock.advance(AFTER_MS);
    const takeDue = world.store.takeDue.bind(world.store);
    world.store.takeDue = async (ref, terms) => {
      if (ref.saleId === many.saleId) throw new OperationalError('redis', 'away', { retryable: true });
      return takeDue(ref, terms);
    };
    expect(await job.runOnce().catch((error: Error) => error.name)).to.equal('OperationalError');
    expect(published()).to.deep.equal([body]);
  });

  it('starts the count of a batch again if it was parked and replayed', async () => {
    const batch = await world.deducted(sale, ['u1']);
    world.clock.advance(AFTER_MS * 16);
    await job.runOnce();
    await world.store.park(batch);
    await world.store.unpark(batch);
    world.clock.advance(AFTER_MS);
    const before = published().length;
    await job.runOnce();
    world.clock.advance(AFTER_MS);
    await job.runOnce();
    expect(published().length - before, 'the first pause is the short one').to.equal(2);
  });

  it('logs a pending batch without a readable body and continues [C7]', async () => {
    const [lost, odd, good] = [
      await world.deducted(sale, ['u1']),
      await world.deducted(sale, ['u2']),
      await world.deducted(sale, ['u3']),
    ];
    const { markers } = world.store.bucket({ ...sale, bucket: 0 });
    markers.delete(lost.batchId);
    markers.set(odd.batchId, { kind: 'deducted', body: '{"v":99}' });
    world.clock.advance(AFTER_MS);
    await job.runOnce();
    expect(published()).to.deep.equal([good.body]);
    expect(world.errors).to.have.length(2);
  });
});
