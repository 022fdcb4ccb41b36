import { expect } from 'chai';
import type { Sale } from '../../../src/core/sale.js';
import { TOPICS } from '../../../src/core/topics.js';
import type { Job } from '../../../src/core/job.js';
import { redrive } from '../../../src/recovery/redrive.js';
import { KeeperWorld } from '../orders/keeper-world.js';

const AFTER_MS = 60_000;
const MAX = 5;

describe('keeper: redrive', () => {
  let world: KeeperWorld;
  let job: Job;
  let sale: Sale;

  beforeEach(async () => {
    world = new KeeperWorld();
    job = create();
    sale = await world.openSale();
  });

  /** A keeper that has just started. */
  const create = (): Job => {
    const { mysql, store, broker, clock, log, metrics } = world;
    const ports = { sales: mysql, store, channel: broker.redriveChannel(), clock, log, metrics };
    return redrive(ports, { afterMs: AFTER_MS, max: MAX });
  };
  const published = (): readonly string[] => world.broker.published(TOPICS.redrive);

  it('publishes a batch that was not marked recorded, as it was sent [M2]', async () => {
    const batch = await world.deducted(sale, ['u1', 'u2*2']);
    world.clock.advance(AFTER_MS);
    await job.runOnce();
    expect(published()).to.deep.equal([batch.body]);
    expect(world.counts.redriven).to.equal(1);
  });

  it('leaves young, recorded and parked batches alone', async () => {
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

  it('at growing intervals: the pause doubles up to sixteen times [M11]', async () => {
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

  it('a bounded number in one run, oldest first; the others in the next ones [M11]', async () => {
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

  it('the bound counts over all sales and buckets', async () => {
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

  it('closed sales are checked too: their batches may still be under way', async () => {
    const batch = await world.deducted(sale, ['u1']);
    await world.store.setState(sale, 'closed');
    world.mysql.putSale({ ...sale, state: 'closed' });
    world.clock.advance(AFTER_MS);
    await job.runOnce();
    expect(published()).to.deep.equal([batch.body]);
  });

  it('when publishing fails, what was published keeps its pause and the rest comes in the next run', async () => {
    const [one, two, three] = [
      await world.deducted(sale, ['u1']),
      await world.deducted(sale, ['u2']),
      await world.deducted(sale, ['u3']),
    ];
    world.clock.advance(AFTER_MS);
    const [first, second, third] = (await world.store.stalePending({ ...sale, bucket: 0 }, 0, 9)).map(
      ({ body }) => body,
    );
    let sent = 0;
    const { mysql, store, broker, clock, log, metrics } = world;
    const inner = broker.redriveChannel();
    const channel: typeof inner = {
      ...inner,
      publish: async (batch) => {
        if (++sent === 2) broker.breakNext('publish_fails');
        return inner.publish(batch);
      },
    };
    job = redrive({ sales: mysql, store, channel, clock, log, metrics }, { afterMs: AFTER_MS, max: MAX });
    const failed = await job.runOnce().catch((error: Error) => error.name);
    expect(failed).to.equal('OperationalError');
    expect(published()).to.deep.equal([first]);
    await job.runOnce();
    expect(published(), 'the first one not again').to.deep.equal([first, second, third]);
    expect([one, two, three].map(({ body }) => body)).to.have.members(published());
    expect(world.counts.redriven).to.equal(3);
  });

  it('tries of a batch that left pending are forgotten, also when the same id is pending again', async () => {
    const batch = await world.deducted(sale, ['u1']);
    world.clock.advance(AFTER_MS);
    for (let i = 0; i < 3; i++) {
      await job.runOnce();
      world.clock.advance(AFTER_MS * 16);
    }
    await world.store.markRecorded([{ batch, orders: [] }]);
    await job.runOnce();
    const bucket = world.store.bucket({ ...sale, bucket: 0 });
    bucket.markers.set(batch.batchId, { kind: 'deducted', body: batch.body }); // a replay puts it back
    bucket.pending.set(batch.batchId, world.clock.nowMs());
    world.clock.advance(AFTER_MS);
    const before = published().length;
    await job.runOnce();
    world.clock.advance(AFTER_MS);
    await job.runOnce();
    expect(published().length - before, 'the first pause is the short one').to.equal(2);
  });

  it('a new keeper begins with short pauses: a duplicate, nothing else', async () => {
    const batch = await world.deducted(sale, ['u1']);
    world.clock.advance(AFTER_MS);
    await job.runOnce();
    await create().runOnce();
    expect(published()).to.deep.equal([batch.body, batch.body]);
  });

  it('a pending batch without a readable body is logged, and does not stop the others [C7]', async () => {
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
