import { expect } from 'chai';
import { mayMove, type Order, type OrderState } from '../../src/core/order.js';
import type { Release } from '../../src/core/ports/batch-store.js';
import type { OrderMove, OrdersMoved } from '../../src/core/ports/outbox.js';
import type { OrderRefunds, RefundWish, VoidStep, VoidWish } from '../../src/core/ports/order-refunds.js';
import { createOrderRefunds } from '../../src/mysql/order-refunds.js';
import { createPaymentCases } from '../../src/mysql/payment-cases.js';
import { createRefundStore, refundName } from '../../src/operate/refunds/refund-store.js';
import { DUE_MS, mysqlMoves, ordersIn, paymentOf } from './order-transitions-worlds.js';
import { useWorld } from './on-each-world.js';
import { systemClock } from './repository-worlds.js';

const WISH: RefundWish = { restock: false, reason: 'the buyer called' };
const VOID: VoidWish = { unpaid: true, refundAll: true, dryRun: false, reason: 'wrong price' };

/** Returns the states to which a move may lead. */
const statesAfter = (move: OrderMove): readonly OrderState[] => {
  return move === 'refund_failed' || move === 'dispute_won' ? ['paid', 'refunded'] : [move];
};
const isLegal = (from: OrderState, to: OrderState): boolean => mayMove(from, to) || (from === to && to === 'refunded');

describe('contract: OrderRefunds on MySQL', () => {
  const world = useWorld(mysqlMoves);
  let refunds: OrderRefunds;
  before(() => {
    refunds = createOrderRefunds(world.pool, { clock: systemClock });
  });

  const shown = async ({ orderId }: Order) => world.orders.findOrder(orderId);
  const stateOf = async (order: Order): Promise<OrderState | undefined> => (await shown(order))?.state;
  const soldOf = async ({ saleId }: Order): Promise<number | undefined> => (await world.sales.find(saleId))?.sold;
  const movesOf = async ({ orderId }: Order): Promise<OrderMove[]> =>
    (await payloadsOf<OrdersMoved>('orders_moved', orderId)).map(({ move }) => move);
  const releasesOf = async ({ orderId }: Order) =>
    (await payloadsOf<Release[]>('release', orderId)).flat().filter((release) => release.orderId === orderId);
  /** Payloads that name the order, oldest first. */
  async function payloadsOf<P>(kind: string, orderId: string): Promise<P[]> {
    const sql = 'SELECT payload FROM outbox WHERE kind = ? AND payload LIKE ? ORDER BY id';
    const rows = await world.pool.query<{ readonly payload: string }>(sql, [kind, `%"${orderId}"%`]);
    return rows.map(({ payload }) => JSON.parse(payload) as P);
  }
  /** Reports a dispute whose id is unique to its payment. */
  const dispute = (paymentId: string, amountCents: number, word: 'open' | 'won' | 'lost', detail: string = word) =>
    world.cases.orderOf(paymentId).then((orderId) => {
      const about = { kind: 'disputed', subject: `du-${paymentId}`, paymentId, orderId, amountCents } as const;
      return refunds.disputed({ ...about, currency: 'EUR', detail }, word, word === 'won' ? 'closed' : 'open');
    });
  const setSale = (saleId: string, state: string) =>
    world.pool.execute('UPDATE sales SET state = ? WHERE id = ?', [state, saleId]);

  /** Creates paid orders of an open sale, each with its payment. */
  async function paid(...texts: string[]): Promise<{ readonly order: Order; readonly paymentId: string }[]> {
    const { sale, orders } = await ordersIn(world, texts);
    await setSale(sale.saleId, 'open');
    const all = orders.map((order) => ({ order, paymentId: paymentOf(order).paymentId }));
    for (const { order, paymentId } of all) await world.transitions.pay(order.orderId, paymentOf(order, { paymentId }));
    return all;
  }
  const onePaid = async () => {
    const [one] = await paid('ann/k*2');
    if (one === undefined) throw new Error('no order');
    return one;
  };
  /** Leases the only due refund of an order. */
  async function due({ orderId }: Order): Promise<string> {
    const [refund] = (await refunds.refundsOf(orderId)).filter(({ state }) => state === 'due');
    if (refund === undefined) throw new Error('no due refund');
    return refund.refundId;
  }

  it('refunds a whole paid order once for any number of requests, and keeps its units sold', async () => {
    const { order, paymentId } = await onePaid();
    const asked = await Promise.all(Array.from({ length: 5 }, () => refunds.order(order.orderId, WISH, 'ann')));
    expect(asked.map(({ outcome }) => outcome)).to.deep.equal(Array(5).fill('refunding'));
    expect(await refunds.refundsOf(order.orderId)).to.have.length(1);
    expect(await stateOf(order)).to.equal('refunding');
    expect(await refunds.settle(await due(order))).to.equal(true);
    expect(await shown(order)).to.include({ state: 'refunded', refundedCents: order.amountCents });
    const [done] = await refunds.refundsOf(order.orderId);
    expect(done).to.include({ state: 'refunded', paymentId, amountCents: order.amountCents, reason: WISH.reason });
    expect(await refunds.settle(done?.refundId ?? ''), 'again').to.equal(false);
    expect((await refunds.order(order.orderId, WISH, 'ann')).outcome).to.equal('refunded');
    expect([await movesOf(order), await releasesOf(order), await soldOf(order)]).to.deep.equal([
      ['paid', 'refunding', 'refunded'],
      [],
      2,
    ]);
    const audit = await world.auditOf(`order:${order.orderId}`);
    expect(audit.map(({ actor, action }) => [actor, action])).to.deep.equal([['ann', 'order.refunded']]);
    expect(await world.violations(order.saleId)).to.deep.equal([]);
  });

  it('gives the units back when the last part of an order with restock is refunded', async () => {
    const { order } = await onePaid();
    const part = { ...WISH, restock: true, amountCents: 1 };
    await refunds.order(order.orderId, { ...part, key: 'a' }, 'ann');
    await refunds.settle(await due(order));
    expect(await shown(order)).to.include({ state: 'refunded', refundedCents: 1 });
    expect((await refunds.order(order.orderId, { ...part, key: 'a' }, 'ann')).outcome, 'again').to.equal('refunded');
    const other = await refunds.order(order.orderId, { ...part, key: 'a', amountCents: 2 }, 'ann');
    expect(other.outcome).to.equal('key_conflict');
    const tooMuch = await refunds.order(order.orderId, { ...WISH, amountCents: order.amountCents }, 'ann');
    expect(tooMuch).to.deep.equal({ outcome: 'too_much', leftCents: order.amountCents - 1 });
    await refunds.order(order.orderId, { ...WISH, restock: true }, 'ann');
    await refunds.settle(await due(order));
    expect(await shown(order)).to.include({ state: 'returned', refundedCents: order.amountCents });
    expect(await soldOf(order)).to.equal(0);
    expect((await releasesOf(order)).map(({ withUnits, userId }) => [withUnits, userId])).to.deep.equal([
      [true, 'ann'],
    ]);
    expect(await world.violations(order.saleId)).to.deep.equal([]);
    expect(await world.orders.countCancelled(order.saleId, 'ann'), 'not a cancellation of the buyer').to.equal(0);
  });

  it('refuses to restock a closed sale, even if the sale closes during the refund', async () => {
    const { order } = await onePaid();
    const wish = { ...WISH, restock: true };
    await refunds.order(order.orderId, wish, 'ann');
    await setSale(order.saleId, 'closed');
    await refunds.settle(await due(order));
    expect([await stateOf(order), await soldOf(order)]).to.deep.equal(['refunded', 2]);
    const { order: second } = await onePaid();
    await setSale(second.saleId, 'closed');
    expect((await refunds.order(second.orderId, wish, 'ann')).outcome).to.equal('sale_closed');
    expect(await stateOf(second)).to.equal('paid');
  });

  it('makes the order paid again when the provider refuses, and lets another refund begin', async () => {
    const { order } = await onePaid();
    await refunds.order(order.orderId, { ...WISH, key: 'first' }, 'ann');
    await refunds.refuse(await due(order), 'refused: no money');
    expect(await stateOf(order)).to.equal('paid');
    const again = await refunds.order(order.orderId, { ...WISH, key: 'first' }, 'ann');
    expect(again).to.deep.include({ outcome: 'refund_failed' });
    expect((await refunds.order(order.orderId, WISH, 'ann')).outcome).to.equal('refunding');
    expect(await movesOf(order)).to.deep.equal(['paid', 'refunding', 'refund_failed', 'refunding']);
  });

  it('refuses a refund of an order that is not paid or already has a due refund', async () => {
    const [unpaid] = (await ordersIn(world, ['ann'])).orders as [Order];
    expect(await refunds.order(unpaid.orderId, WISH, 'ann')).to.deep.equal({
      outcome: 'wrong_state',
      state: 'pending_payment',
    });
    const { order } = await onePaid();
    await refunds.order(order.orderId, { ...WISH, amountCents: 1, key: 'a' }, 'ann');
    expect((await refunds.order(order.orderId, { ...WISH, amountCents: 1, key: 'b' }, 'ann')).outcome).to.equal(
      'in_progress',
    );
    for (const orderId of ['1', 'x', `${order.orderId}x`]) {
      expect((await refunds.order(orderId, WISH, 'ann')).outcome, orderId).to.equal('not_found');
    }
  });

  it('cancels an unpaid order for its buyer, with an entry in the audit log', async () => {
    const [order] = (await ordersIn(world, ['ann/k*2'])).orders as [Order];
    for (let i = 0; i < 2; i++) expect(await refunds.cancel(order.orderId, 'a call', 'ann')).to.equal('cancelled');
    expect([await stateOf(order), await soldOf(order), await movesOf(order)]).to.deep.equal([
      'cancelled',
      0,
      ['cancelled'],
    ]);
    const audit = await world.auditOf(`order:${order.orderId}`);
    expect(audit.map(({ action, after }) => [action, after])).to.deep.equal([
      ['order.cancelled', { state: 'cancelled', reason: 'a call' }],
    ]);
    const { order: other } = await onePaid();
    expect(await refunds.cancel(other.orderId, 'a call', 'ann')).to.deep.equal({ state: 'paid' });
  });

  it('refunds an order in the archive', async () => {
    const { order } = await onePaid();
    const { saleId } = order;
    await setSale(saleId, 'closed');
    await world.pool.execute("UPDATE sales SET retirement = 'done', retired_at = NOW(3) WHERE id = ?", [saleId]);
    await refunds.order(order.orderId, { ...WISH, amountCents: 1, key: 'a' }, 'ann');
    await world.archive.begin(saleId, 'ann');
    expect(await world.archive.move(saleId, null, 10)).to.include({ moved: 0, kept: 1 });
    await refunds.settle(await due(order));
    expect(await world.archive.move(saleId, null, 10)).to.include({ moved: 1 });
    expect(await shown(order)).to.include({ state: 'refunded', refundedCents: 1 });
    await refunds.order(order.orderId, WISH, 'ann');
    const leased = (await refunds.lease(100, 60_000)).find(({ orderId }) => orderId === order.orderId);
    expect(leased).to.include({ amountCents: order.amountCents - 1, currency: 'EUR' });
    await refunds.settle(leased?.refundId ?? '');
    expect(await shown(order)).to.include({ state: 'refunded', refundedCents: order.amountCents });
    expect(await movesOf(order)).to.deep.equal(['paid', 'refunding', 'refunded', 'refunding', 'refunded']);
  });

  it('lets one keeper at a time request a refund, and an operator claim it between requests', async () => {
    const { order, paymentId } = await onePaid();
    await refunds.order(order.orderId, WISH, 'ann');
    const both = await Promise.all([refunds.lease(100, 60_000), refunds.lease(100, 60_000)]);
    const mine = both.flat().filter(({ orderId }) => orderId === order.orderId);
    expect(mine).to.have.length(1);
    expect(mine[0]).to.include({ paymentId, amountCents: order.amountCents, attempts: 1 });
    expect((await refunds.takeOn(paymentId, 'ann')).outcome).to.equal('being_asked');
    await refunds.postpone({ refundId: mine[0]?.refundId ?? '', attempts: 1 }, 60_000, 'no answer');
    expect((await refunds.takeOn(paymentId, 'ann')).outcome).to.equal('done');
    expect((await refunds.takeOn(paymentId, 'ann')).outcome, 'again').to.equal('not_found');
    const [entry] = await world.auditOf(`refund:${paymentId}`);
    expect(entry?.action).to.equal('refund.claimed');
    expect(await stateOf(order)).to.equal('refunded');
  });

  /** Requests a refund of an order, which the provider refuses. @returns its id */
  async function failed(order: Order, wish: RefundWish = WISH): Promise<string> {
    await refunds.order(order.orderId, { ...wish, key: 'first' }, 'ann');
    const refundId = await due(order);
    await refunds.refuse(refundId, 'refused: no money');
    return refundId;
  }

  it('retries a failed refund as one new refund for any number of requests', async () => {
    const { order } = await onePaid();
    const refundId = await failed(order, { ...WISH, amountCents: 5 });
    const asked = await Promise.all(Array.from({ length: 4 }, () => refunds.again(refundId, 'a new card', 'bob')));
    expect(asked.map(({ outcome }) => outcome)).to.deep.equal(Array(4).fill('refunding'));
    const [first, second, ...more] = await refunds.refundsOf(order.orderId);
    expect(more).to.deep.equal([]);
    expect(first).to.include({ refundId, state: 'failed', followedBy: second?.refundId });
    expect(second).to.include({ state: 'due', amountCents: 5, reason: 'a new card', actor: 'bob', followedBy: null });
    await refunds.refuse(second?.refundId ?? '', 'refused: no');
    expect((await refunds.again(refundId, 'x', 'bob')).outcome, 'the first').to.equal('refund_failed');
    expect((await refunds.again(second?.refundId ?? '', 'x', 'bob')).outcome, 'the second').to.equal('refunding');
    await refunds.settle(await due(order));
    expect((await refunds.again(second?.refundId ?? '', 'x', 'bob')).outcome).to.equal('refunded');
    expect(await shown(order)).to.include({ state: 'refunded', refundedCents: 5 });
    for (const id of ['999999999', '12x']) expect((await refunds.again(id, 'x', 'bob')).outcome).to.equal('not_found');
  });

  it('lets one operator pay a failed refund by hand, and gives its units back', async () => {
    const { order, paymentId } = await onePaid();
    const refundId = await failed(order, { ...WISH, restock: true });
    const taken = await Promise.all([1, 2, 3].map(() => refunds.takeOnRefund(refundId, 'by bank', 'bob')));
    expect(taken.map(({ outcome }) => outcome)).to.have.members(['done', 'already_refunded', 'already_refunded']);
    expect(await shown(order)).to.include({ state: 'returned', refundedCents: order.amountCents });
    expect([await soldOf(order), (await releasesOf(order)).length]).to.deep.equal([0, 1]);
    expect(await movesOf(order)).to.deep.equal(['paid', 'refunding', 'refund_failed', 'refunding', 'returned']);
    const [entry] = await world.auditOf(`refund:${paymentId}`);
    expect(entry).to.deep.include({ actor: 'bob', action: 'refund.claimed' });
    expect(entry?.after).to.include({ state: 'refunded', reason: 'by bank' });
    expect(await world.violations(order.saleId)).to.deep.equal([]);
  });

  it('lets no operator claim a refund while a keeper requests it, or once its money has gone back', async () => {
    const { order, paymentId } = await onePaid();
    const refundId = await failed(order);
    await refunds.again(refundId, 'a new card', 'bob');
    const leased = (await refunds.lease(100, 60_000)).find(({ orderId }) => orderId === order.orderId);
    expect((await refunds.takeOnRefund(refundId, 'by bank', 'bob')).outcome).to.equal('being_asked');
    await refunds.postpone({ refundId: leased?.refundId ?? '', attempts: 1 }, 60_000, 'no answer');
    expect((await refunds.takeOnRefund(refundId, 'by bank', 'bob')).outcome).to.equal('done');
    const { order: other, paymentId: otherPayment } = await onePaid();
    const otherId = await failed(other);
    await elsewhere(otherPayment, other.amountCents);
    expect(await refunds.takeOnRefund(otherId, 'by bank', 'bob')).to.deep.equal({ outcome: 'too_much', leftCents: 0 });
    expect((await world.auditOf(`refund:${paymentId}`)).length).to.equal(1);
  });

  it('lists and counts refunds by state and sale, refunds without an order first', async () => {
    const [one, two] = await paid('ann', 'bob');
    const { order, paymentId } = one as { order: Order; paymentId: string };
    const { saleId } = order;
    const second = paymentOf(order);
    expect(await world.transitions.pay(order.orderId, { ...second, paymentId: `${paymentId}-2` })).to.equal(
      'refund_due',
    );
    const failedId = await failed(order, { ...WISH, amountCents: 7 });
    await refunds.order((two as { order: Order }).order.orderId, WISH, 'ann');
    const dueId = await due((two as { order: Order }).order);
    const { order: elsewhere } = await onePaid();
    await failed(elsewhere);
    const store = createRefundStore(world.pool);
    const names = async (...asked: Parameters<typeof store.list>) => (await store.list(...asked)).map(refundName);
    const all = [`${paymentId}-2`, `order/${failedId}`, `order/${dueId}`];
    expect(await names({ saleId }, { max: 9 })).to.deep.equal(all);
    for (const [index, name] of all.entries()) {
      expect(await names({ saleId }, { max: 1, after: name }), name).to.deep.equal(all.slice(index + 1, index + 2));
    }
    expect(await names({ saleId, state: 'due' }, { max: 9 })).to.deep.equal([all[0], all[2]]);
    expect(await names({ saleId, state: 'failed' }, { max: 9 })).to.deep.equal([all[1]]);
    expect(await names({ saleId: '999999' }, { max: 9 })).to.deep.equal([]);
    expect(await names({ saleId }, { max: 9, after: 'unknown' })).to.deep.equal([]);
    const counted = { due: order.amountCents, failed: 7 };
    expect(await store.counts(saleId)).to.deep.equal([
      { state: 'due', refunds: 1, amountCents: counted.due },
      { state: 'failed', refunds: 1, amountCents: counted.failed },
    ]);
    expect(await store.counts('999999')).to.deep.equal([]);
    await refunds.again(failedId, 'a new card', 'bob');
    const [shownFailed] = await store.list({ saleId, state: 'failed' }, { max: 9 });
    const [, followed] = await refunds.refundsOf(order.orderId);
    expect(shownFailed).to.include({
      refundId: failedId,
      followedBy: followed?.refundId,
      lastError: 'refused: no money',
    });
  });

  it('records a refund that was made at the provider, and recognizes our own refund', async () => {
    const { order, paymentId } = await onePaid();
    const found = (cents: number, currency?: string) => elsewhere(paymentId, cents, currency);
    expect(await found(1, 'JPY')).to.equal('does_not_fit');
    expect(await found(order.amountCents + 1)).to.equal('does_not_fit');
    for (const word of ['recorded', 'known'] as const) expect(await found(1)).to.equal(word);
    expect(await shown(order)).to.include({ state: 'refunded', refundedCents: 1 });
    await refunds.order(order.orderId, WISH, 'ann');
    expect(await found(order.amountCents), 'the report of our own refund comes first').to.equal('known');
    await refunds.settle(await due(order));
    expect(await found(order.amountCents)).to.equal('known');
    expect(await movesOf(order)).to.deep.equal(['paid', 'refunded', 'refunding', 'refunded']);
    expect(await elsewhere('unknown', 1)).to.equal('does_not_fit');
  });

  it('marks the order as paid again if the money of a refund comes back', async () => {
    const { order, paymentId } = await onePaid();
    await refunds.order(order.orderId, WISH, 'ann');
    const refundId = await due(order);
    await refunds.settle(refundId);
    expect(await refunds.cameBack(paymentId, 're_1', 'closed card'), 'not ours').to.equal(false);
    expect(await refunds.cameBack(paymentId, refundId, 'closed card')).to.equal(true);
    expect(await refunds.cameBack(paymentId, refundId, 'closed card'), 'again').to.equal(false);
    expect(await shown(order)).to.include({ state: 'paid', refundedCents: 0 });
    expect((await movesOf(order)).at(-1)).to.equal('refund_failed');
  });

  it('follows a dispute of a paid order to its end, except while a refund is due', async () => {
    const [won, lost, refunded] = await paid('ann', 'bob', 'eve');
    for (const { order, paymentId } of [won, lost] as { order: Order; paymentId: string }[]) {
      for (let i = 0; i < 2; i++) await dispute(paymentId, order.amountCents, 'open');
      expect(await stateOf(order)).to.equal('disputed');
      expect((await refunds.order(order.orderId, WISH, 'ann')).outcome).to.equal('wrong_state');
    }
    await dispute(won?.paymentId ?? '', 1, 'won', 'open'); // with the detail of the first report
    await dispute(lost?.paymentId ?? '', lost?.order.amountCents ?? 0, 'lost');
    expect(await movesOf(won?.order as Order)).to.deep.equal(['paid', 'disputed', 'dispute_won']);
    expect(await movesOf(lost?.order as Order)).to.deep.equal(['paid', 'disputed', 'refunded']);
    expect(await shown(lost?.order as Order)).to.include({ refundedCents: lost?.order.amountCents });
    const { order, paymentId } = refunded as { order: Order; paymentId: string };
    await refunds.order(order.orderId, WISH, 'ann');
    await dispute(paymentId, order.amountCents, 'open');
    expect(await stateOf(order)).to.equal('refunding');
  });

  it('marks a partly refunded order as disputed, and so prevents further refunds', async () => {
    for (const word of ['won', 'lost'] as const) {
      const { order, paymentId } = await onePaid();
      const part = { ...WISH, amountCents: 100, key: 'k1' };
      await refunds.order(order.orderId, part, 'ann');
      await refunds.settle(await due(order));
      const rest = order.amountCents - 100;
      await dispute(paymentId, rest, 'open');
      expect(await stateOf(order)).to.equal('disputed');
      expect((await refunds.order(order.orderId, WISH, 'ann')).outcome).to.equal('wrong_state');
      for (let i = 0; i < 2; i++) await dispute(paymentId, rest, word);
      const refundedCents = word === 'won' ? 100 : order.amountCents;
      expect(await shown(order)).to.include({ state: 'refunded', refundedCents });
    }
  });

  it('marks an order as disputed when its refund ends, if a dispute began during the refund', async () => {
    for (const end of ['refuse', 'settle'] as const) {
      const { order, paymentId } = await onePaid();
      await refunds.order(order.orderId, { ...WISH, amountCents: 100, key: 'k1' }, 'ann');
      await dispute(paymentId, order.amountCents, 'open');
      expect(await stateOf(order)).to.equal('refunding');
      if (end === 'refuse') await refunds.refuse(await due(order), 'disputed');
      else await refunds.settle(await due(order));
      expect(await stateOf(order), end).to.equal('disputed');
      const last = end === 'refuse' ? 'refund_failed' : 'refunded';
      expect(await movesOf(order)).to.deep.equal(['paid', 'refunding', last, 'disputed']);
    }
  });

  it('counts a part lost in a dispute once, and never marks its order as disputed again', async () => {
    const { order, paymentId } = await onePaid();
    await refunds.order(order.orderId, { ...WISH, amountCents: 100, key: 'k1' }, 'ann');
    await dispute(paymentId, 50, 'open');
    for (let i = 0; i < 2; i++) await dispute(paymentId, 50, 'lost');
    expect(await shown(order)).to.include({ state: 'refunding', refundedCents: 50 });
    await refunds.settle(await due(order));
    await dispute(paymentId, 50, 'lost', 'a late copy');
    expect(await shown(order)).to.include({ state: 'refunded', refundedCents: 150 });
  });

  it('records a refund at the provider while our own refund is due, and opens a case', async () => {
    const { order, paymentId } = await onePaid();
    await refunds.order(order.orderId, WISH, 'ann');
    for (const word of ['does_not_fit', 'known'] as const) expect(await elsewhere(paymentId, 40)).to.equal(word);
    await refunds.refuse(await due(order), 'greater than what is left');
    expect(await shown(order)).to.include({ state: 'refunded', refundedCents: 40 });
    await refunds.order(order.orderId, { ...WISH, amountCents: 30, key: 'k1' }, 'ann');
    expect(await elsewhere(paymentId, 90), 'ours of 30, and 20 more').to.equal('does_not_fit');
    await refunds.settle(await due(order));
    expect(await shown(order)).to.include({ state: 'refunded', refundedCents: 90 });
  });

  it('adds a refund at the provider to the amount lost in a dispute', async () => {
    const { order, paymentId } = await onePaid();
    await dispute(paymentId, 100, 'open');
    await dispute(paymentId, 100, 'lost');
    expect(await elsewhere(paymentId, 60)).to.equal('recorded');
    expect(await elsewhere(paymentId, 60)).to.equal('known');
    expect(await shown(order)).to.include({ state: 'refunded', refundedCents: 160 });
  });

  it('opens a case if more than the amount went back', async () => {
    const { order: lost, paymentId: lostId } = await onePaid();
    await dispute(lostId, lost.amountCents, 'lost');
    for (const word of ['recorded', 'known'] as const) expect(await elsewhere(lostId, 60)).to.equal(word);
    expect(await casesOf(lost)).to.deep.include({ kind: 'refunded_twice', cents: '60' });
    const { order, paymentId } = await onePaid();
    await refunds.order(order.orderId, { ...WISH, restock: true }, 'ann');
    await elsewhere(paymentId, 40);
    await refunds.settle(await due(order));
    expect(await shown(order)).to.include({ state: 'returned', refundedCents: order.amountCents });
    expect(await casesOf(order)).to.deep.equal([
      { kind: 'refunded_elsewhere', cents: '40' },
      { kind: 'refunded_twice', cents: '40' },
    ]);
  });

  it('does not mark an order as refunded if the money came back and its units are sold again', async () => {
    const { order, paymentId } = await onePaid();
    await refunds.order(order.orderId, { ...WISH, restock: true }, 'ann');
    const refundId = await due(order);
    await refunds.settle(refundId);
    expect((await refunds.order(order.orderId, WISH, 'ann')).outcome).to.equal('refunded');
    await refunds.cameBack(paymentId, refundId, 'closed card');
    expect(await refunds.order(order.orderId, WISH, 'ann')).to.include({ outcome: 'wrong_state', state: 'returned' });
  });

  const casesOf = ({ orderId }: Order) =>
    world.pool.query<{ kind: string; cents: string }>(
      'SELECT kind, CAST(amount_cents AS CHAR) AS cents FROM payment_cases WHERE order_id = ? ORDER BY id',
      [orderId],
    );

  const elsewhere = async (paymentId: string, amountCents: number, currency = 'EUR') => {
    const orderId = await createPaymentCases(world.pool).orderOf(paymentId);
    const found = { paymentId, orderId, amountCents, currency, kind: 'refunded_elsewhere' } as const;
    return refunds.refundedElsewhere({ ...found, subject: paymentId, detail: `${amountCents} at the provider` });
  };

  async function voidAll(saleId: string, wish: VoidWish): Promise<Omit<VoidStep, 'next' | 'outcome'>> {
    const sum = { cancelled: 0, refunding: 0, refundCents: 0 };
    for (let after: string | null = null; ;) {
      const step = await refunds.voidNext(saleId, after, wish, 'ann');
      if (step.outcome !== 'done') throw new Error(step.outcome);
      sum.cancelled += step.cancelled;
      sum.refunding += step.refunding;
      sum.refundCents += step.refundCents;
      if (step.next === null) return sum;
      after = step.next;
    }
  }

  it('voids a sale after a count, and cancels or refunds each order once in any number of runs', async () => {
    const users = Array.from({ length: 12 }, (_, index) => `u${index}`);
    const { sale, orders } = await ordersIn(world, users, { sale: { priceCents: 100 } });
    for (const order of orders.slice(0, 5)) await world.transitions.pay(order.orderId, paymentOf(order));
    const [part, gone] = orders as [Order, Order];
    await refunds.order(part.orderId, { ...WISH, amountCents: 40 }, 'ann');
    await refunds.settle(await due(part));
    await refunds.order(gone.orderId, WISH, 'ann');
    await refunds.settle(await due(gone));
    await setSale(sale.saleId, 'open');
    const expected = { cancelled: 7, refunding: 4, refundCents: 360 };
    expect(await voidAll(sale.saleId, { ...VOID, dryRun: true })).to.deep.equal(expected);
    expect((await refunds.voidNext(sale.saleId, null, VOID, 'ann')).outcome).to.equal('sale_open');
    await setSale(sale.saleId, 'paused');
    expect((await refunds.voidNext(sale.saleId, 'x', VOID, 'ann')).outcome).to.equal('no_place');
    expect((await refunds.voidNext('999999', null, VOID, 'ann')).outcome).to.equal('not_found');
    expect(await voidAll(sale.saleId, VOID)).to.deep.equal(expected);
    expect(await voidAll(sale.saleId, VOID), 'again').to.deep.equal({ cancelled: 0, refunding: 0, refundCents: 0 });
    expect(await soldOf(part)).to.equal(5);
    expect(await world.violations(sale.saleId)).to.deep.equal([]);
    expect(
      (await world.auditOf(`sale:${sale.saleId}`)).filter(({ action }) => action === 'sale.voided'),
    ).to.have.length(3);
  });

  it('finds orders by every state', async () => {
    const [one, two] = await paid('ann', 'bob');
    const { order } = one as { order: Order };
    await refunds.order(order.orderId, { ...WISH, restock: true }, 'ann');
    const states = async (state: OrderState) =>
      (await world.search.page({ saleId: order.saleId, state }, null, 10))?.orders.map(({ userId }) => userId);
    expect([await states('refunding'), await states('paid')]).to.deep.equal([['ann'], ['bob']]);
    await refunds.settle(await due(order));
    expect([await states('returned'), await states('cancelled')]).to.deep.equal([['ann'], []]);
    expect(await stateOf((two as { order: Order }).order)).to.equal('paid');
  });

  /** All moves of an order, from each beginning. */
  const MOVERS: Record<string, (order: Order, paymentId: string) => Promise<unknown>> = {
    pay: ({ orderId, amountCents }, paymentId) => world.transitions.pay(orderId, { paymentId, amountCents }),
    secondPayment: (order) => world.transitions.pay(order.orderId, paymentOf(order)),
    cancel: ({ orderId }) => world.transitions.cancel(orderId),
    operatorCancel: ({ orderId }) => refunds.cancel(orderId, 'a call', 'ann'),
    expire: ({ orderId }) => world.transitions.expire([orderId]),
    refund: ({ orderId }) => refunds.order(orderId, { ...WISH, restock: true }, 'ann'),
    part: ({ orderId }) => refunds.order(orderId, { ...WISH, amountCents: 1 }, 'ann'),
    settle: async ({ orderId }) => {
      for (const { refundId } of await refunds.refundsOf(orderId)) await refunds.settle(refundId);
    },
    refuse: async ({ orderId }) => {
      for (const { refundId } of await refunds.refundsOf(orderId)) await refunds.refuse(refundId, 'refused');
    },
    cameBack: async ({ orderId }, paymentId) => {
      for (const { refundId } of await refunds.refundsOf(orderId)) await refunds.cameBack(paymentId, refundId, 'back');
    },
    again: async ({ orderId }) => {
      for (const { refundId } of await refunds.refundsOf(orderId)) await refunds.again(refundId, 'again', 'ann');
    },
    byHand: async ({ orderId }) => {
      for (const { refundId } of await refunds.refundsOf(orderId)) await refunds.takeOnRefund(refundId, 'cash', 'ann');
    },
    elsewhere: ({ amountCents }, paymentId) => elsewhere(paymentId, amountCents),
    dispute: ({ amountCents }, paymentId) => dispute(paymentId, amountCents, 'open'),
    won: ({ amountCents }, paymentId) => dispute(paymentId, amountCents, 'won'),
    lost: ({ amountCents }, paymentId) => dispute(paymentId, amountCents, 'lost'),
    void: ({ saleId }) => refunds.voidNext(saleId, null, VOID, 'ann'),
    voidPaid: ({ saleId }) => refunds.voidNext(saleId, null, { ...VOID, unpaid: false }, 'ann'),
  };
  const BEGINNINGS: Record<string, readonly string[]> = {
    unpaid: [],
    paid: ['pay'],
    refunding: ['pay', 'refund'],
    'disputed after a refund of a part': ['pay', 'part', 'settle', 'dispute'],
    failed: ['pay', 'refund', 'refuse'],
  };

  for (const [beginning, before] of Object.entries(BEGINNINGS)) {
    it(`keeps order, units, money and events consistent when two programs move one order at once: ${beginning}`, async () => {
      const names = Object.keys(MOVERS);
      for (const [index, first] of names.entries()) {
        const row = names.slice(index).map(async (second) => {
          const { sale, orders } = await ordersIn(world, ['ann/k*2'], { paymentWindowMs: DUE_MS });
          const [order] = orders as [Order];
          await setSale(sale.saleId, 'paused');
          const { paymentId } = paymentOf(order);
          const run = (name: string) => MOVERS[name]?.(order, paymentId);
          for (const name of before) await run(name);
          await Promise.all([run(first), run(second)]);
          await checkBooks(order, `${first} and ${second}`);
        });
        await Promise.all(row);
      }
    });
  }

  /** Asserts that the moves follow the table, and that units, events and money agree with the final state. */
  async function checkBooks(order: Order, what: string): Promise<void> {
    const now = await shown(order);
    const all = await refunds.refundsOf(order.orderId);
    let states: readonly OrderState[] = ['pending_payment'];
    for (const move of await movesOf(order)) {
      const next = statesAfter(move).filter((to) => states.some((from) => isLegal(from, to)));
      expect(next, `${what}: ${states.join()} by ${move}`).to.not.deep.equal([]);
      states = next;
    }
    const state = now?.state ?? 'failed';
    expect(states, what).to.include(state);
    const isHeld = ['cancelled', 'expired', 'returned'].includes(state) ? 0 : 1;
    expect([await soldOf(order), (await releasesOf(order)).length], what).to.deep.equal([2 * isHeld, 1 - isHeld]);
    expect(all.filter((one) => one.state === 'due').length, what).to.equal(state === 'refunding' ? 1 : 0);
    const back = all.reduce((sum, one) => sum + (one.state === 'refunded' ? one.amountCents : 0), 0);
    expect(now?.refundedCents, what).to.equal(Math.min(back, order.amountCents));
    const twice = (await casesOf(order)).filter(({ kind }) => kind === 'refunded_twice');
    const beyond = twice.reduce((sum, { cents }) => sum + Number(cents), 0);
    if (back > order.amountCents) expect(beyond, what).to.equal(back - order.amountCents);
    expect(await world.violations(order.saleId), what).to.deep.equal([]);
  }
});
