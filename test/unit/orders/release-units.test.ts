import { expect } from 'chai';
import type { Sale } from '../../../src/core/sale.js';
import type { Job } from '../../../src/core/job.js';
import { relayOutbox } from '../../../src/orders/relay-outbox.js';
import { releaseUnits } from '../../../src/orders/outbox-handlers.js';
import { KeeperWorld } from './keeper-world.js';

/** Longer than the longest pause of a failed row, ms. */
const PAUSE_MS = 40_000;

describe('keeper: release-units', () => {
  let world: KeeperWorld;
  let job: Job;
  let sale: Sale;

  beforeEach(async () => {
    world = new KeeperWorld();
    const { mysql, store, log, metrics } = world;
    const [relay, tryTroubled] = relayOutbox(
      { outbox: mysql.outbox, handle: releaseUnits(store, metrics), clock: world.clock, log, metrics },
      { kind: 'release', max: 10, leaseMs: 20_000 },
    );
    job = { name: 'both', runOnce: () => relay.runOnce().then(() => tryTroubled.runOnce()) };
    sale = await world.openSale({ stock: 100 });
  });

  const unitsLeft = (): number => world.store.bucket({ saleId: sale.saleId, bucket: 0 }).unitsLeft;
  const undone = (): number => world.mysql.outbox.undone('release').length;
  /** Writes batches of one purchase whose rows ended `failed`. Each has a release in the outbox. */
  const failedBatches = async (count: number): Promise<void> => {
    for (let i = 0; i < count; i++) await world.recorded(await world.deducted(sale, [`u${i}*2`]), [`u${i}`]);
  };

  it('returns the units of an outbox row and marks the row done', async () => {
    const batch = await world.deducted(sale, ['u1*2', 'u2*3']);
    const [, orderId] = await world.recorded(batch, ['u2']);
    await job.runOnce();
    expect([unitsLeft(), undone(), world.counts.released]).to.deep.equal([98, 0, 1]);
    const entry = await world.store.findRequest({ saleId: sale.saleId, bucket: 0 }, 'u2', 'k1');
    expect(entry).to.deep.equal({ state: 'released', orderId, quantity: 3 });
  });

  it('returns only units that the outbox row promises', async () => {
    await world.recorded(await world.deducted(sale, ['u1']));
    await job.runOnce();
    expect([unitsLeft(), world.counts.released]).to.deep.equal([99, 0]);
  });

  it('releases no unit twice if a run crashes before it marks the row, and runs again [C3]', async () => {
    await failedBatches(1);
    world.store.breakNext('release_reply_lost');
    expect(await job.runOnce().catch((error: Error) => error.name)).to.equal('OperationalError');
    expect([unitsLeft(), undone()], 'the fault happened').to.deep.equal([100, 1]);
    world.clock.advance(PAUSE_MS);
    await job.runOnce();
    expect([unitsLeft(), undone(), world.counts.released]).to.deep.equal([100, 0, 0]);
  });
});
