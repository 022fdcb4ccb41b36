import { expect } from 'chai';
import { encodeOrderEvents, type OrderEvent } from '../../../../src/core/order-event.js';
import { encodePaymentDeadline } from '../../../../src/core/payment-deadline.js';
import type { Sale } from '../../../../src/core/sale.js';
import { GROUPS, TOPICS } from '../../../../src/core/topics.js';
import type { ReplayAnswer } from '../../../../src/operate/dead-letters/replay-dead-letter.js';
import { DeadLetterWorld } from './dead-letter-world.js';

const WAIT_MS = 10_000;
const WINDOW_MS = 900_000;
const EVENT: OrderEvent = { eventId: '1-paid', type: 'order.paid', saleId: '7', orders: ['1', '2'], atMs: 1 };

describe('replay-message', () => {
  let world: DeadLetterWorld;
  let sale: Sale;
  beforeEach(async () => {
    world = new DeadLetterWorld();
    sale = await world.openSale();
  });

  const park = async (group: string, body: string): Promise<string> => {
    const messageId = `m${world.deadLetters.deadLetters.length}`;
    await world.deadLetters.park({
      messageId,
      group,
      originTopic: 'whatever',
      saleId: sale.saleId,
      batchId: null,
      body,
      reason: 'retries_exhausted',
      detail: 'given up',
      attempts: 17,
    });
    return world.deadLetters.deadLetters.at(-1)?.deadLetterId ?? '';
  };
  const replay = (deadLetterId: string): Promise<ReplayAnswer> =>
    world.admin.replay(deadLetterId, { actor: 'ann', waitMs: WAIT_MS });
  const actions = (): string[] => world.deadLetters.audited.map(({ action }) => action);

  /** Orders of one batch, and their deadline message. */
  async function deadlineOf(...users: string[]): Promise<{ orders: string[]; body: string; deadlineAtMs: number }> {
    const batch = await world.deducted(sale, users);
    const orders = await world.recorded(batch);
    const deadlineAtMs = world.clock.nowMs() + WINDOW_MS;
    const { batchId, saleId } = batch;
    return { orders, deadlineAtMs, body: encodePaymentDeadline({ batchId, saleId, orders, deadlineAtMs }) };
  }

  const failed: OrderEvent = { ...EVENT, eventId: '2-failed', type: 'order.failed', orders: ['3'] };

  for (const [group, came] of [
    [GROUPS.coupon, 'each of 2 paid orders has its coupon'],
    [GROUPS.notifier, '2 events; notifications are not followed'],
  ] as const) {
    it(`publishes events on which ${group} gave up again, and closes the dead letter [M8]`, async () => {
      const body = encodeOrderEvents([EVENT, failed]);
      const deadLetterId = await park(group, body);
      if (group === GROUPS.coupon) for (const orderId of EVENT.orders) world.coupons.add(orderId);
      expect(await replay(deadLetterId)).to.deep.equal({ outcome: 'replayed', note: `published again: ${came}` });
      expect(world.broker.published(TOPICS.orderEvent)).to.deep.equal([body]);
      expect(world.deadLetter(deadLetterId)).to.include({ state: 'replayed', replays: 1 });
      expect(actions()).to.deep.equal(['dead_letter.replay_begun', 'dead_letter.replayed']);
      expect(await replay(deadLetterId)).to.deep.equal({ outcome: 'already_closed', state: 'replayed' });
      expect(world.broker.published(TOPICS.orderEvent)).to.have.length(1);
    });
  }

  it('waits after a payment event until each order has its coupon [M8]', async () => {
    const deadLetterId = await park(GROUPS.coupon, encodeOrderEvents([EVENT, { ...EVENT, eventId: 'again' }, failed]));
    const withoutCoupon = world.withoutCoupon.bind(world);
    const reads: string[][] = [];
    world.withoutCoupon = (orderIds) => {
      reads.push([...orderIds]);
      expect(world.deadLetter(deadLetterId).state, 'not before').to.equal('parked');
      if (reads.length === 3) for (const orderId of orderIds) world.coupons.add(orderId);
      return withoutCoupon(orderIds);
    };
    expect((await replay(deadLetterId)).outcome).to.equal('replayed');
    expect(reads).to.deep.equal([EVENT.orders, EVENT.orders, EVENT.orders]);
  });

  it('stays parked and may be replayed again if a coupon is not issued in time', async () => {
    const deadLetterId = await park(GROUPS.coupon, encodeOrderEvents([EVENT]));
    world.coupons.add('1');
    const note = 'published again, 1 of 2 paid orders have no coupon';
    expect(await replay(deadLetterId)).to.deep.equal({ outcome: 'unfinished', note });
    expect(world.deadLetter(deadLetterId)).to.include({ state: 'parked', replays: 1, note });
    world.coupons.add('2');
    expect((await replay(deadLetterId)).outcome).to.equal('replayed');
  });

  it('publishes a past deadline for now, and waits until no order of it is overdue [M8]', async () => {
    const { orders, body } = await deadlineOf('u1', 'u2');
    const deadLetterId = await park(GROUPS.expirer, body);
    world.clock.advance(WINDOW_MS + 1);
    const dueOf = world.dueOf.bind(world);
    let reads = 0;
    world.dueOf = (orderIds) => {
      if (++reads === 3) for (const orderId of orders) world.mysql.endOrder(orderId, 'expired');
      return dueOf(orderIds);
    };
    const publishedAtMs = world.clock.nowMs();
    expect(await replay(deadLetterId)).to.deep.equal({
      outcome: 'replayed',
      note: 'published again: none of 2 orders is overdue',
    });
    expect(reads).to.equal(3);
    const [published = ''] = world.broker.published(TOPICS.paymentDeadline);
    expect(JSON.parse(published)).to.deep.equal({ ...JSON.parse(body), deadlineAt: publishedAtMs });
    expect(world.deadLetter(deadLetterId).state).to.equal('replayed');
  });

  it('stays parked and may be replayed again if its orders are not ended in time', async () => {
    const { body } = await deadlineOf('u1', 'u2');
    const deadLetterId = await park(GROUPS.expirer, body);
    world.clock.advance(WINDOW_MS + 1);
    const beforeMs = world.clock.nowMs();
    expect((await replay(deadLetterId)).outcome).to.equal('unfinished');
    expect(world.clock.nowMs() - beforeMs).to.equal(WAIT_MS);
    expect(world.deadLetter(deadLetterId)).to.include({ state: 'parked', replays: 1 });
    expect(world.deadLetter(deadLetterId).note).to.contain('2 of 2 orders are unpaid and past their deadline');
  });

  it('publishes a future deadline for its original time', async () => {
    const { body, deadlineAtMs } = await deadlineOf('u1');
    expect((await replay(await park(GROUPS.expirer, body))).outcome).to.equal('replayed');
    const expirer = world.broker.source(TOPICS.paymentDeadline, GROUPS.expirer);
    expect(await expirer.receive(1), 'not yet').to.deep.equal([]);
    world.clock.advance(WINDOW_MS);
    const [delivery] = await expirer.receive(1);
    expect(JSON.parse(delivery?.body ?? '')).to.include({ deadlineAt: deadlineAtMs });
  });

  it('does not publish an unreadable body and stores the reason in the dead letter [M7]', async () => {
    for (const group of [GROUPS.expirer, GROUPS.coupon]) {
      const deadLetterId = await park(group, '{"v":99}');
      expect((await replay(deadLetterId)).outcome).to.equal('unreadable');
      expect(world.deadLetter(deadLetterId)).to.include({ state: 'parked', replays: 0 });
      expect(world.deadLetter(deadLetterId).note).to.contain('version 99');
    }
    expect(world.broker.published(TOPICS.orderEvent)).to.deep.equal([]);
    expect(world.broker.published(TOPICS.paymentDeadline)).to.deep.equal([]);
  });
});
