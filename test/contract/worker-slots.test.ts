import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { OperationalError } from '../../src/core/errors.js';
import type { DeadLetter } from '../../src/core/ports/dead-letter-repository.js';
import type { Clock } from '../../src/core/ports/clock.js';
import { ManualClock } from '../helpers/memory/manual-clock.js';
import { MemoryWorkerSlots, SLOT_GRACE_MS } from '../helpers/memory/memory-worker-slots.js';
import { WORLDS, type RepositoryWorld } from './repository-worlds.js';

const unique = (): string => randomBytes(12).toString('base64url');

for (const [name, createWorld] of WORLDS) {
  describe(`contract parked dead letters and WorkerSlots on ${name}`, () => {
    let world: RepositoryWorld;
    before(async () => {
      world = await createWorld();
    });
    after(() => world?.close());

    const deadLetterOf = (parts: Partial<DeadLetter> = {}): DeadLetter => ({
      messageId: unique(),
      group: 'seckill-order-writer',
      originTopic: 'seckill-purchase',
      saleId: null,
      batchId: null,
      body: '{',
      reason: 'undecodable',
      detail: 'not JSON',
      attempts: 1,
      ...parts,
    });

    it('park: once per message and group [M8]', async () => {
      const deadLetter = deadLetterOf();
      expect(await world.deadLetters.park(deadLetter)).to.equal('parked');
      expect(await world.deadLetters.park({ ...deadLetter, attempts: 2 })).to.equal('already_parked');
      expect(await world.deadLetters.park({ ...deadLetter, group: 'seckill-order-writer-redrive' })).to.equal('parked');
    });

    it('park: whatever a message may hold, or it would come back for ever [M7]', async () => {
      const odd = `\u0000\ud800'"\\🎉${'x'.repeat(20_000)}`;
      const deadLetter = deadLetterOf({ body: odd, detail: odd, saleId: odd, batchId: odd, originTopic: odd });
      expect(await world.deadLetters.park(deadLetter)).to.equal('parked');
    });

    it('slots: one each, kept by a renewal, free after the owner has left [D8]', async () => {
      const [ann, bob] = [unique(), unique()];
      const first = await world.slots.acquire(ann, 60_000);
      const second = await world.slots.acquire(bob, 60_000);
      expect(first.slot).to.be.within(0, 255);
      expect(second.slot).not.to.equal(first.slot);
      const again = await world.slots.acquire(ann, 60_000);
      expect(again.slot).to.equal(first.slot);
      expect(again.validUntilMs).to.be.at.least(first.validUntilMs);
      expect(again.validUntilMs).to.be.at.most(world.clock.nowMs() + 60_000);
      await world.slots.free(ann);
      await world.slots.free(bob);
      await world.slots.free(bob);
    });

    it('slots: many processes at once get different ones [D8]', async () => {
      const owners = Array.from({ length: 8 }, unique);
      const leases = await Promise.all(owners.map((owner) => world.slots.acquire(owner, 10_000)));
      expect(new Set(leases.map(({ slot }) => slot)).size).to.equal(owners.length);
      await Promise.all(owners.map((owner) => world.slots.free(owner)));
    });
  });
}

// The table is shared with whatever else runs on this database, so these two run in memory only.
describe('WorkerSlots in memory', () => {
  it('an ended lease rests before somebody else gets the slot; the old owner may have it back until then [D8]', async () => {
    const clock: Clock & { advance(ms: number): void } = new ManualClock();
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
