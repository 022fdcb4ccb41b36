import { expect } from 'chai';
import type { PaymentAttempts } from '../../src/core/ports/payment-attempts.js';
import { createPaymentAttempts } from '../../src/mysql/payment-attempts.js';
import { ManualClock } from '../helpers/memory/manual-clock.js';
import { MemoryPaymentAttempts } from '../helpers/memory/memory-payment-attempts.js';
import { ownMysqlWorld, systemClock } from './repository-worlds.js';

/** Attempts of a database of its own: a lease takes those of all orders together. */
interface World {
  readonly attempts: PaymentAttempts;
  elapse(ms: number): Promise<void>;
  close(): Promise<void>;
}

async function mysqlWorld(): Promise<World> {
  const { pool, close } = await ownMysqlWorld(4);
  return { attempts: createPaymentAttempts(pool), elapse: (ms) => systemClock.sleep(ms), close };
}

async function memoryWorld(): Promise<World> {
  const clock = new ManualClock();
  const attempts = new MemoryPaymentAttempts(clock);
  return { attempts, elapse: (ms) => clock.sleep(ms), close: async () => undefined };
}

const LEASE_MS = 60_000;
const SHORT_MS = 300;

for (const [name, createWorld] of [
  ['memory', memoryWorld],
  ['mysql', mysqlWorld],
] as const) {
  describe(`contract PaymentAttempts on ${name}`, function () {
    this.timeout(30_000);
    let world: World;
    let orders = 4_611_686_018_427_387_000n;
    const freshOrder = (): string => String(++orders);
    before(async () => {
      world = await createWorld();
    });
    after(() => world?.close());
    afterEach(async () => {
      for (let at = orders; at > orders - 10n; at--) {
        for (const attempt of await world.attempts.openOf(String(at))) await world.attempts.close(attempt, 'charged');
      }
    });

    it('an attempt is open, with its key and amount, until it is closed', async () => {
      const orderId = freshOrder();
      expect(await world.attempts.openOf(orderId)).to.deep.equal([]);
      await world.attempts.open(orderId, 'k1', 1999, LEASE_MS);
      await world.attempts.open(orderId, 'k2', 1999, LEASE_MS);
      const open = await world.attempts.openOf(orderId);
      expect(open.map(({ key }) => key)).to.have.members(['k1', 'k2']);
      expect(open[0]).to.include({ orderId, amountCents: 1999, version: 0 });
      expect(open[0]?.ageMs).to.be.within(0, 5_000);
      await world.attempts.close({ orderId, key: 'k1' }, 'charged');
      await world.attempts.close({ orderId, key: 'k2' }, 'declined');
      expect(await world.attempts.openOf(orderId)).to.deep.equal([]);
      expect(await world.attempts.openOf('12x')).to.deep.equal([]);
    });

    it('it is asked for when it is due, by one keeper at a time, and again when the lease is over', async () => {
      const orderId = freshOrder();
      await world.attempts.open(orderId, 'k', 1, SHORT_MS);
      expect(await world.attempts.lease(10, LEASE_MS), 'not due').to.deep.equal([]);
      await world.elapse(SHORT_MS + 50);
      const [first] = await world.attempts.lease(10, SHORT_MS);
      expect(first).to.include({ orderId, key: 'k', amountCents: 1, version: 1 });
      expect(await world.attempts.lease(10, LEASE_MS)).to.deep.equal([]);
      await world.elapse(SHORT_MS + 50);
      expect((await world.attempts.lease(10, LEASE_MS))[0]).to.include({ orderId, version: 2 });
      await world.attempts.postpone({ orderId, key: 'k' }, 0, 'no answer');
      expect(await world.attempts.lease(10, LEASE_MS)).to.have.length(1);
    });

    it('a keeper does not close what a buyer has opened anew meanwhile', async () => {
      const orderId = freshOrder();
      await world.attempts.open(orderId, 'k', 1, 0);
      await world.elapse(10);
      const [leased] = await world.attempts.lease(10, LEASE_MS);
      if (leased === undefined) throw new Error('it is due');
      await world.attempts.open(orderId, 'k', 1, LEASE_MS);
      await world.attempts.close(leased, 'not_charged');
      expect(await world.attempts.openOf(orderId)).to.have.length(1);
    });

    it('one that was closed is open again when its key is used again, and young again', async () => {
      const orderId = freshOrder();
      await world.attempts.open(orderId, 'k', 1, 0);
      await world.elapse(SHORT_MS);
      await world.attempts.close({ orderId, key: 'k' }, 'declined');
      await world.attempts.open(orderId, 'k', 1, LEASE_MS);
      const [open] = await world.attempts.openOf(orderId);
      expect(open?.version).to.equal(1);
      expect(open?.ageMs).to.be.below(SHORT_MS);
    });
  });
}
