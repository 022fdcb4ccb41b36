import { expect } from 'chai';
import { tidyOutbox, watchOutbox } from '../../../src/orders/relay-outbox.js';
import { KeeperWorld } from './keeper-world.js';
import { partial } from '../../helpers/partial.js';

describe('keeper: watch-outbox and tidy-outbox', () => {
  let world: KeeperWorld;
  beforeEach(() => {
    world = new KeeperWorld();
  });

  it('publishes the number and age of undone rows for each kind', async () => {
    const { outbox } = world.mysql;
    expect(await watchOutbox(outbox, world.metrics).runOnce()).to.equal('idle');
    world.backlogs.length = 0;
    outbox.add('release', 'a', []);
    world.clock.advance(5_000);
    outbox.add('release', 'b', []);
    await outbox.markDone([outbox.add('orders_moved', 'c', null)]);
    expect(await watchOutbox(outbox, world.metrics).runOnce()).to.equal(undefined);
    expect(world.backlogs).to.deep.equal([
      { kind: 'batch_recorded', undone: 0, oldestMs: 0 },
      { kind: 'orders_moved', undone: 0, oldestMs: 0 },
      { kind: 'release', undone: 2, oldestMs: 5_000 },
    ]);
  });

  it('removes only rows that were done long ago, in limited steps', async () => {
    const { outbox } = world.mysql;
    const job = tidyOutbox(outbox, world.metrics, { keepMs: 60_000 });
    const old = Array.from({ length: 2_500 }, () => outbox.add('release', 'old', []));
    await outbox.markDone(old);
    const undone = outbox.add('release', 'undone', []);
    world.clock.advance(60_001);
    const young = outbox.add('release', 'young', []);
    await outbox.markDone([young]);
    await job.runOnce();
    expect(outbox.rows.map(({ id }) => id)).to.deep.equal([undone, young]);
    expect(world.counts.removed).to.equal(2_500);
  });

  it('ends each run, however many rows there are', async () => {
    let steps = 0;
    const outbox = { removeDone: async () => (steps++, 1_000) };
    await tidyOutbox(partial(outbox), world.metrics, { keepMs: 60_000 }).runOnce();
    expect(steps).to.equal(600);
  });
});
