import { expect } from 'chai';
import type { FoundCase } from '../../src/core/ports/payment-cases.js';
import { MOVES_WORLDS, ordersIn, paymentOf, type MovesWorld } from './order-transitions-worlds.js';
import { onEachFreshWorld } from './on-each-world.js';

const DISPUTE: FoundCase = {
  kind: 'disputed',
  subject: 'du_1',
  paymentId: 'pi_1',
  orderId: '99',
  amountCents: 1998,
  currency: 'EUR',
  detail: 'fraudulent: needs_response',
};
const UNKNOWN = { paymentId: null, orderId: null, amountCents: null, currency: null };

onEachFreshWorld<MovesWorld>('contract PaymentCases', MOVES_WORLDS, (world) => {
  const all = () => world.cases.list({}, { max: 10 });
  const states = async () => (await all()).map(({ subject, state }) => `${subject} ${state}`);

  it('records a case once per kind and subject, with the facts of the first report [P3]', async () => {
    for (let i = 0; i < 3; i++) await world.cases.note(DISPUTE);
    await world.cases.note({ ...DISPUTE, kind: 'refund_failed' });
    const [first, second, ...more] = await all();
    expect(first).to.deep.include({ ...DISPUTE, state: 'open' });
    expect(second).to.deep.include({ kind: 'refund_failed', subject: 'du_1' });
    expect(more).to.deep.equal([]);
  });

  it('records a case with few known details, and texts of any length and script', async () => {
    const detail = `it says "\u{1f4b6}\u0000" ${'é'.repeat(2000)}`;
    await world.cases.note({ ...DISPUTE, ...UNKNOWN, kind: 'unrecorded', subject: 'a'.repeat(64), detail });
    const [found] = await all();
    expect(found).to.deep.include(UNKNOWN);
    expect(detail.startsWith(found?.detail ?? '?')).to.equal(true);
  });

  it('keeps a case closed when the same facts are reported again, and reopens it for new facts', async () => {
    await world.cases.note(DISPUTE);
    const [found] = await all();
    const caseId = found?.caseId ?? '';
    expect(await world.cases.close(caseId, 'boss')).to.include({ caseId, state: 'closed' });
    expect(await world.cases.close(caseId, 'boss'), 'again').to.include({ state: 'closed' });
    await world.cases.note(DISPUTE);
    expect(await states()).to.deep.equal(['du_1 closed']);
    await world.cases.note({ ...DISPUTE, amountCents: 5, detail: 'fraudulent: lost' });
    expect(await all()).to.have.length(1);
    expect((await all())[0]).to.include({ state: 'open', amountCents: 5, detail: 'fraudulent: lost' });
    await world.cases.note({ ...DISPUTE, detail: 'fraudulent: won' }, 'closed');
    expect(await states()).to.deep.equal(['du_1 closed']);
    expect((await world.audited()).map(({ actor, action, subject }) => [actor, action, subject])).to.deep.equal([
      ['boss', 'payment_case.closed', `payment_case:${caseId}`],
    ]);
  });

  it('closes only the settled case', async () => {
    await world.cases.note({ ...DISPUTE, kind: 'unrecorded', subject: 'pi_1' });
    await world.cases.note({ ...DISPUTE, kind: 'unrecorded', subject: 'pi_2' });
    await world.cases.settle('unrecorded', 'pi_1');
    await world.cases.settle('disputed', 'pi_2');
    expect(await states()).to.deep.equal(['pi_1 closed', 'pi_2 open']);
  });

  it('lists cases page by page, oldest first, in one state or all', async () => {
    for (let n = 1; n <= 5; n++) await world.cases.note({ ...DISPUTE, subject: `du_${n}` }, n % 2 ? 'open' : 'closed');
    const subjects = async (...of: Parameters<MovesWorld['cases']['list']>) =>
      (await world.cases.list(...of)).map(({ subject }) => subject);
    expect(await subjects({ state: 'open' }, { max: 2 })).to.deep.equal(['du_1', 'du_3']);
    const [first] = await all();
    expect(await subjects({}, { max: 2, afterCaseId: first?.caseId ?? '' })).to.deep.equal(['du_2', 'du_3']);
  });

  it('finds the order of a payment, and no case for an invalid id', async () => {
    const { orders } = await ordersIn(world, ['ann']);
    const [order] = orders;
    if (order === undefined) throw new Error('there is an order');
    const payment = paymentOf(order);
    expect(await world.cases.orderOf(payment.paymentId)).to.equal(null);
    await world.transitions.pay(order.orderId, payment);
    expect(await world.cases.orderOf(payment.paymentId)).to.equal(order.orderId);
    for (const caseId of ['1x', '', '0', '999']) expect(await world.cases.close(caseId, 'boss'), caseId).to.equal(null);
  });
});
