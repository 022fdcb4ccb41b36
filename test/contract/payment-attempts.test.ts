import { expect } from 'chai';
import { LATER_MS, MOVES_WORLDS, ordersIn, paymentOf, type MovesWorld } from './order-transitions-worlds.js';
import { onEachWorld } from './on-each-world.js';

const LEASE_MS = 60_000;
const SHORT_MS = 2_000;

onEachWorld<MovesWorld>('contract PaymentAttempts', MOVES_WORLDS, (world) => {
  const made: string[] = [];
  const freshOrder = async (buyer = 'ann'): Promise<string> => {
    const { orders } = await ordersIn(world, [buyer], { paymentWindowMs: LATER_MS });
    const orderId = orders[0]?.orderId ?? '';
    made.push(orderId);
    return orderId;
  };
  afterEach(async () => {
    for (const orderId of made.splice(0)) {
      for (const attempt of await world.attempts.openOf(orderId)) await world.attempts.close(attempt, 'charged');
    }
  });

  it('keeps an attempt open with its key and amount until it is closed', async () => {
    const orderId = await freshOrder();
    expect(await world.attempts.openOf(orderId)).to.deep.equal([]);
    expect(await world.attempts.open(orderId, 'k1', 1999, LEASE_MS)).to.deep.equal({ outcome: 'opened' });
    const open = await world.attempts.openOf(orderId);
    expect(open).to.have.length(1);
    expect(open[0]).to.include({ orderId, key: 'k1', amountCents: 1999, version: 0 });
    expect(open[0]?.ageMs).to.be.within(0, 5_000);
    await world.attempts.close({ orderId, key: 'k1' }, 'declined');
    expect(await world.attempts.openOf(orderId)).to.deep.equal([]);
    expect(await world.attempts.openOf('12x')).to.deep.equal([]);
  });

  it('offers a due attempt to one keeper at a time, and again after its lease', async () => {
    const orderId = await freshOrder();
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

  it('does not let a keeper close an attempt that a buyer has reopened', async () => {
    const orderId = await freshOrder();
    await world.attempts.open(orderId, 'k', 1, 0);
    await world.elapse(10);
    const [leased] = await world.attempts.lease(10, LEASE_MS);
    if (leased === undefined) throw new Error('it is due');
    await world.attempts.open(orderId, 'k', 1, LEASE_MS);
    await world.attempts.close(leased, 'not_charged');
    expect(await world.attempts.openOf(orderId)).to.have.length(1);
  });

  it('reopens a closed attempt as a new attempt when its key is used again', async () => {
    const orderId = await freshOrder();
    await world.attempts.open(orderId, 'k', 1, 0);
    await world.elapse(SHORT_MS);
    await world.attempts.close({ orderId, key: 'k' }, 'declined');
    await world.attempts.open(orderId, 'k', 1, LEASE_MS);
    const [open] = await world.attempts.openOf(orderId);
    expect(open?.version).to.equal(1);
    expect(open?.ageMs).to.be.below(SHORT_MS);
  });

  it('opens no new key after the maximum of declined attempts, but accepts an earlier key [P2]', async () => {
    const [orderId, other] = [await freshOrder('bea'), await freshOrder('bea')];
    const bound = { perOrder: 2, perBuyerHour: 100, refuses: () => true };
    const open = async (id: string, key: string, own: Partial<typeof bound> = {}) =>
      (await world.attempts.open(id, key, 1, LEASE_MS, { ...bound, ...own })).outcome;
    for (const key of ['k1', 'k2']) {
      expect(await open(orderId, key)).to.equal('opened');
      await world.attempts.close({ orderId, key }, 'declined');
    }
    expect(await open(orderId, 'k3')).to.equal('decline_limit_reached');
    expect(await open(orderId, 'k3', { refuses: () => false }), 'a dry run').to.equal('opened');
    await world.attempts.close({ orderId, key: 'k3' }, 'not_charged');
    expect(await open(orderId, 'k1')).to.equal('opened');
    await world.attempts.close({ orderId, key: 'k1' }, 'declined');
    expect(await open(other, 'k1', { perBuyerHour: 2 }), 'of the same buyer').to.equal('decline_limit_reached');
    expect(await open(other, 'k1', { perBuyerHour: 3 })).to.equal('opened');
  });

  it('opens one of forty concurrent keys at a time, and names the open key to the others', async () => {
    const orderId = await freshOrder();
    const keys = Array.from({ length: 40 }, (_, n) => `k${n}`);
    const all = await Promise.all(keys.map((key) => world.attempts.open(orderId, key, 1, LEASE_MS)));
    const [open, ...more] = await world.attempts.openOf(orderId);
    expect([open === undefined, more]).to.deep.equal([false, []]);
    for (const [index, answer] of all.entries()) {
      if (keys[index] === open?.key) expect(answer).to.deep.equal({ outcome: 'opened' });
      else if (answer.outcome !== 'in_progress') expect.fail(`k${index}: ${answer.outcome}`);
      else expect(answer.other).to.include({ orderId, key: open?.key, amountCents: 1 });
    }
    expect(await world.attempts.open(orderId, open?.key ?? '', 1, LEASE_MS), 'its own retry').to.include({
      outcome: 'opened',
    });
    await world.attempts.close({ orderId, key: open?.key ?? '' }, 'declined');
    expect((await world.attempts.open(orderId, 'next', 1, LEASE_MS)).outcome).to.equal('opened');
  });

  it('opens no attempt for an order that is paid, has ended or does not exist', async () => {
    const [paid, cancelled] = [await freshOrder(), await freshOrder()];
    await world.transitions.pay(paid, paymentOf((await world.orders.findOrder(paid))!));
    await world.transitions.cancel(cancelled);
    for (const orderId of [paid, cancelled, '4611686018427387001', '12x']) {
      expect(await world.attempts.open(orderId, 'k', 1, LEASE_MS), orderId).to.deep.equal({ outcome: 'wrong_state' });
      expect(await world.attempts.openOf(orderId)).to.deep.equal([]);
    }
  });

  it('opens no attempt until all attempts that an older API opened are closed', async () => {
    const orderId = await freshOrder();
    await world.leaveOpenAttempt(orderId, 'k1');
    await world.leaveOpenAttempt(orderId, 'k2');
    expect((await world.attempts.openOf(orderId)).map(({ key }) => key)).to.have.members(['k1', 'k2']);
    for (const key of ['k1', 'k2', 'k3']) {
      expect((await world.attempts.open(orderId, key, 1, LEASE_MS)).outcome, key).to.equal('in_progress');
    }
    await world.attempts.close({ orderId, key: 'k1' }, 'declined');
    expect((await world.attempts.open(orderId, 'k2', 1, LEASE_MS)).outcome).to.equal('opened');
    await world.attempts.close({ orderId, key: 'k2' }, 'declined');
    expect((await world.attempts.open(orderId, 'k3', 1, LEASE_MS)).outcome).to.equal('opened');
  });
});
