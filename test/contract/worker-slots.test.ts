import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { OperationalError } from '../../src/core/errors.js';
import { ManualClock } from '../helpers/memory/manual-clock.js';
import { MemoryWorkerSlots, SLOT_GRACE_MS } from '../helpers/memory/memory-worker-slots.js';
import { createWorkerSlots } from '../../src/mysql/worker-slots.js';
import { ownMysqlWorld, WORLDS, type RepositoryWorld } from './repository-worlds.js';
import { onEachWorld } from './on-each-world.js';

const unique = (): string => randomBytes(12).toString('base64url');

onEachWorld<RepositoryWorld>('contract WorkerSlots', WORLDS, (world) => {
  it('gives each owner a slot, which the owner keeps by renewing and frees by leaving [D8]', async () => {
    const [ann, bob] = [unique(), unique()];
    const first = await world.slots.acquire(ann, 60_000);
    const second = await world.slots.acquire(bob, 60_000);
    expect(first.slot).to.be.within(0, 255);
    expect(second.slot).not.to.equal(first.slot);
    const again = await world.slots.acquire(ann, 60_000);
    expect(again.slot).to.equal(first.slot);
    expect(again.nowMs).to.be.at.least(first.nowMs);
    expect(again.nowMs).to.be.within(world.clock.nowMs() - 2000, world.clock.nowMs() + 2000);
    expect(again.restedSinceMs, 'it was ours').to.equal(0);
    expect(first.restedSinceMs, 'the lease before had ended').to.be.below(first.nowMs);
    await world.slots.free(ann);
    await world.slots.free(bob);
    await world.slots.free(bob);
  });

  it('gives different slots to many concurrent processes [D8]', async () => {
    const owners = Array.from({ length: 8 }, unique);
    const leases = await Promise.all(owners.map((owner) => world.slots.acquire(owner, 10_000)));
    expect(new Set(leases.map(({ slot }) => slot)).size).to.equal(owners.length);
    await Promise.all(owners.map((owner) => world.slots.free(owner)));
  });
});

describe('WorkerSlots on mysql, with a separate table', () => {
  it('returns the time up to which another owner may have used the slot [D8]', async () => {
    const world = await ownMysqlWorld();
    try {
      const { pool } = world;
      const slots = createWorkerSlots(pool);
      await pool.execute(
        'UPDATE worker_slots SET leased_until = UTC_TIMESTAMP(3) + INTERVAL 30 MINUTE WHERE slot <> 7',
      );
      await pool.execute(
        "UPDATE worker_slots SET owner = NULL, leased_until = '2026-01-01 10:00:00.123' WHERE slot = 7",
      );
      const lease = await slots.acquire(unique(), 60_000);
      expect(lease).to.include({ slot: 7, restedSinceMs: Date.UTC(2026, 0, 1, 10, 0, 0, 123) });
      const error = await slots.acquire(unique(), 60_000).catch((cause: unknown) => cause);
      expect(error, 'the others are taken').to.be.instanceOf(OperationalError);
    } finally {
      await world.close();
    }
  });
});

// Other tests use the table, so this test runs only in memory.
describe('WorkerSlots in memory', () => {
  it('lets an owner renew an ended lease for a while before another owner gets the slot [D8]', async () => {
    const clock = new ManualClock();
    const slots = new MemoryWorkerSlots(clock);
    const all = Array.from({ length: 256 }, unique);
    for (const owner of all) await slots.acquire(owner, 1000);
    const error = await slots.acquire('one more', 1000).catch((cause: unknown) => cause);
    expect(error).to.be.instanceOf(OperationalError);
    clock.advance(1000 + SLOT_GRACE_MS);
    expect((await slots.acquire(all[7] as string, 1000)).slot).to.equal(7);
    clock.advance(1);
    expect((await slots.acquire('one more', 1000)).slot).to.equal(0);
  });
});
