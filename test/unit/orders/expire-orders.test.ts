import { expect } from 'chai';
import { expireBySweep } from '../../../src/orders/expire-orders.js';
import { KeeperWorld } from './keeper-world.js';

const WINDOW_MS = 900_000; // of every order that the world records

describe('keeper: expire-orders', () => {
  let world: KeeperWorld;
  beforeEach(() => {
    world = new KeeperWorld();
  });
  const jobOf = (max: number) =>
    expireBySweep({ transitions: world.transitions, clocks: world.clocks, metrics: world.metrics }, { max });
  async function unpaid(count: number): Promise<string[]> {
    const sale = await world.openSale({ stock: 5000 });
    const names = Array.from({ length: count }, (_, index) => `u${index}`);
    const orderIds: string[] = [];
    for (let from = 0; from < count; from += 100) {
      orderIds.push(...(await world.recorded(await world.deducted(sale, names.slice(from, from + 100)))));
    }
    return orderIds;
  }
  const states = async (orderIds: readonly string[]): Promise<Record<string, number>> => {
    const counts: Record<string, number> = {};
    for (const orderId of orderIds) {
      const state = (await world.mysql.findOrder(orderId))?.state ?? 'missing';
      counts[state] = (counts[state] ?? 0) + 1;
    }
    return counts;
  };

  it('ends every due order in steps, and no order before its deadline', async () => {
    const orderIds = await unpaid(1200);
    world.clock.advance(WINDOW_MS - 1);
    await jobOf(20_000).runOnce();
    expect(await states(orderIds)).to.deep.equal({ pending_payment: 1200 });
    world.clock.advance(1);
    await jobOf(20_000).runOnce();
    expect(await states(orderIds)).to.deep.equal({ expired: 1200 });
    expect(world.counts.expired).to.equal(1200);
  });

  it('ends a limited number of orders in one run and continues in the next', async () => {
    const orderIds = await unpaid(700);
    world.clock.advance(WINDOW_MS + 5000);
    await jobOf(600).runOnce();
    expect(await states(orderIds)).to.deep.equal({ expired: 600, pending_payment: 100 });
    await jobOf(600).runOnce();
    expect(await states(orderIds)).to.deep.equal({ expired: 700 });
  });

  it('does not touch a paid order', async () => {
    const [paid, late] = (await unpaid(2)) as [string, string];
    await world.transitions.pay(paid, { paymentId: 'p1', amountCents: 1999 });
    world.clock.advance(WINDOW_MS);
    await jobOf(100).runOnce();
    expect(await states([paid, late])).to.deep.equal({ paid: 1, expired: 1 });
  });

  it('expires nothing while the MySQL clock is more than 2 s off [D10]', async () => {
    const orderIds = await unpaid(3);
    world.clock.advance(WINDOW_MS);
    const run = (aheadMs: number): Promise<unknown> => {
      world.ahead.mysql = aheadMs;
      world.clock.advance(1_000);
      return jobOf(100)
        .runOnce()
        .catch((error: Error) => error.message);
    };
    expect(await run(2_001)).to.match(/clock of MySQL is 2001 ms ahead of the clock of this machine; set the clocks/);
    expect(await run(-20 * 60_000)).to.match(/clock of MySQL is 1200000 ms behind the clock of this machine/);
    expect(await states(orderIds)).to.deep.equal({ pending_payment: 3 });
    expect(await run(2_000)).to.equal(undefined);
    expect(await states(orderIds)).to.deep.equal({ expired: 3 });
  });

  it('fails the run while MySQL is down, and does the work in the next run', async () => {
    const orderIds = await unpaid(3);
    world.clock.advance(WINDOW_MS);
    world.transitions.breakNext('expire_fails');
    expect(
      await jobOf(100)
        .runOnce()
        .catch((error: Error) => error.name),
    ).to.equal('OperationalError');
    expect(world.counts.expired).to.equal(0);
    await jobOf(100).runOnce();
    expect(await states(orderIds)).to.deep.equal({ expired: 3 });
  });
});
