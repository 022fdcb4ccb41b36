import { expect } from 'chai';
import type { LeasedRefund } from '../../src/core/ports/refund-repository.js';
import { MOVES_WORLDS, ordersIn, paymentOf, type MovesWorld } from './order-transitions-worlds.js';
import { onEachFreshWorld } from './on-each-world.js';

const LEASE_MS = 60_000;
/** Longer than three statements on a busy machine. */
const SHORT_MS = 2_000;

onEachFreshWorld<MovesWorld>('contract RefundRepository', MOVES_WORLDS, (world) => {
  /** Creates one order per text, cancelled before its money arrived. @returns payment ids, oldest first */
  async function owed(...texts: string[]): Promise<{ paymentIds: string[]; orderIds: string[] }> {
    const { orders } = await ordersIn(world, texts);
    const paymentIds: string[] = [];
    for (const order of orders) {
      await world.transitions.cancel(order.orderId);
      const payment = paymentOf(order);
      expect(await world.transitions.pay(order.orderId, payment)).to.equal('refund_due');
      paymentIds.push(payment.paymentId);
    }
    return { paymentIds, orderIds: orders.map(({ orderId }) => orderId) };
  }
  const idsOf = (leased: readonly LeasedRefund[]): string[] => leased.map(({ paymentId }) => paymentId);

  it('leases each refund once with the owed amount, and again when its lease ends', async () => {
    const { paymentIds, orderIds } = await owed('ann', 'bob*2', 'eve');
    const first = await world.refunds.lease(2, SHORT_MS);
    const rest = await world.refunds.lease(2, SHORT_MS);
    expect([...idsOf(first), ...idsOf(rest)]).to.have.members(paymentIds);
    expect(first).to.have.length(2);
    const [bob] = [...first, ...rest].filter(({ orderId }) => orderId === orderIds[1]);
    expect(bob).to.include({ paymentId: paymentIds[1], amountCents: 2 * 1999, attempts: 1 });
    expect(await world.refunds.lease(5, SHORT_MS)).to.deep.equal([]);
    await world.clock.sleep(SHORT_MS + 50);
    const again = await world.refunds.lease(5, LEASE_MS);
    expect(again.map(({ attempts }) => attempts)).to.deep.equal([2, 2, 2]);
  });

  it('gives each refund to only one of many concurrent leases', async () => {
    const { paymentIds } = await owed(...Array.from({ length: 12 }, (_, index) => `u${index}`));
    const all = await Promise.all(Array.from({ length: 6 }, () => world.refunds.lease(4, LEASE_MS)));
    // Leases skip refunds that another lease has locked.
    const rest = await world.refunds.lease(12, LEASE_MS);
    expect(idsOf([...all.flat(), ...rest])).to.have.members(paymentIds);
  });

  it('keeps a completed refund completed and no longer due, and shows the refunds of an order', async () => {
    const { paymentIds, orderIds } = await owed('ann', 'bob');
    const [paymentId, other] = paymentIds as [string, string];
    await world.refunds.lease(5, SHORT_MS);
    await world.refunds.markRefunded(paymentId);
    await world.refunds.markRefunded(paymentId);
    await world.refunds.postpone({ paymentId, attempts: 1 }, 0, 'too late');
    await world.clock.sleep(SHORT_MS + 50);
    expect(idsOf(await world.refunds.lease(5, LEASE_MS))).to.deep.equal([other]);
    const shared = { amountCents: 1999, reason: 'order_cancelled' };
    const [ann, bob] = orderIds as [string, string];
    expect(await world.refunds.refundsOf(ann)).to.deep.equal([
      { paymentId, orderId: ann, state: 'refunded', ...shared },
    ]);
    expect(await world.refunds.refundsOf(bob)).to.deep.equal([
      { paymentId: other, orderId: bob, state: 'due', ...shared },
    ]);
    expect(await world.refunds.refundsOf('12x')).to.deep.equal([]);
    const known = await Promise.all([paymentId, other, `${paymentId}-x`].map((id) => world.refunds.has(id)));
    expect(known, 'done, due, none').to.deep.equal([true, true, false]);
  });

  it('removes a refund from the due list when an operator claims it, once and with an audit entry', async () => {
    const { paymentIds, orderIds } = await owed('ann', 'bob');
    const [paymentId, other] = paymentIds as [string, string];
    await world.refunds.lease(1, SHORT_MS);
    await world.refunds.postpone({ paymentId, attempts: 1 }, 0, 'refused: no');
    const taken = await Promise.all([1, 2, 3].map(() => world.refunds.takeOn(paymentId, 'boss')));
    expect(taken.map(({ outcome }) => outcome)).to.have.members(['done', 'already_refunded', 'already_refunded']);
    const shared = { paymentId, orderId: orderIds[0], amountCents: 1999, reason: 'order_cancelled' };
    for (const answer of taken) {
      if (answer.outcome === 'not_found') throw new Error('not found');
      expect(answer.refund).to.include({ ...shared, state: 'refunded', attempts: 1, lastError: null });
    }
    expect(await world.audited()).to.deep.equal([
      {
        actor: 'boss',
        action: 'refund.claimed',
        subject: `refund:${paymentId}`,
        before: { state: 'due', attempts: 1, lastError: 'refused: no' },
        after: { state: 'refunded', orderId: orderIds[0], amountCents: 1999 },
      },
    ]);
    expect(await world.refunds.markRefunded(paymentId), 'a keeper that is under way gets false').to.equal(false);
    await world.clock.sleep(SHORT_MS + 50);
    expect(idsOf(await world.refunds.lease(5, LEASE_MS))).to.deep.equal([other]);
    expect(await world.refunds.takeOn('unknown', 'boss')).to.deep.equal({ outcome: 'not_found' });
    expect(await world.audited()).to.have.length(1);
  });

  it("refuses an operator's claim while a keeper asks the provider, and records a dead keeper in `last_error`", async () => {
    const { paymentIds } = await owed('ann');
    const [paymentId] = paymentIds as [string];
    await world.refunds.lease(1, SHORT_MS);
    expect((await world.refunds.takeOn(paymentId, 'boss')).outcome).to.equal('being_asked');
    expect(await world.audited()).to.deep.equal([]);
    await world.clock.sleep(SHORT_MS + 50);
    const taken = await world.refunds.takeOn(paymentId, 'boss');
    expect(taken.outcome).to.equal('done');
    const [entry] = await world.audited();
    expect((entry?.before as { lastError: string }).lastError).to.match(
      /asked the provider, and no answer was recorded/,
    );
  });

  it('takes back the lease of a keeper that has its answer', async () => {
    const { paymentIds } = await owed('ann');
    const [paymentId] = paymentIds as [string];
    await world.refunds.lease(1, LEASE_MS);
    await world.refunds.postpone({ paymentId, attempts: 1 }, LEASE_MS, 'refused: no');
    expect((await world.refunds.takeOn(paymentId, 'boss')).outcome).to.equal('done');
  });

  it('lists refunds page by page, oldest first', async () => {
    const { paymentIds } = await owed('ann', 'bob', 'eve', 'dan');
    const [, bob] = paymentIds as [string, string];
    await world.refunds.takeOn(bob, 'boss');
    const list = async (...asked: Parameters<typeof world.refunds.list>): Promise<string[]> =>
      (await world.refunds.list(...asked)).map(({ paymentId }) => paymentId);
    const all = await list({}, { max: 10 });
    expect(all).to.have.members(paymentIds);
    const due = all.filter((paymentId) => paymentId !== bob);
    expect(await list({ state: 'due' }, { max: 10 })).to.deep.equal(due);
    expect(await list({ state: 'refunded' }, { max: 10 })).to.deep.equal([bob]);
    expect(await list({ state: 'due' }, { max: 2 })).to.deep.equal(due.slice(0, 2));
    expect(await list({ state: 'due' }, { max: 2, after: due[1] as string })).to.deep.equal(due.slice(2));
  });

  it('offers a postponed refund again after its delay', async () => {
    await owed('ann');
    const [leased] = await world.refunds.lease(1, LEASE_MS);
    await world.refunds.postpone(leased!, 2_000, 'x'.repeat(2000));
    expect(await world.refunds.lease(1, LEASE_MS)).to.deep.equal([]);
    await world.clock.sleep(2_050);
    expect((await world.refunds.lease(1, LEASE_MS)).map(({ attempts }) => attempts)).to.deep.equal([2]);
  });

  it("ignores a postponement after the keeper's lease has ended, and keeps the next lease", async () => {
    const { paymentIds } = await owed('ann');
    const [late] = await world.refunds.lease(1, 50);
    await world.clock.sleep(80);
    expect(await world.refunds.lease(1, LEASE_MS)).to.have.length(1);
    await world.refunds.postpone(late!, 0, 'no answer from the provider');
    expect(await world.refunds.lease(1, LEASE_MS)).to.deep.equal([]);
    expect((await world.refunds.takeOn(paymentIds[0] as string, 'boss')).outcome).to.equal('being_asked');
  });
});
