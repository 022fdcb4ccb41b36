import { expect } from 'chai';
import type { Sale } from '../../../../src/core/sale.js';
import { encodeOrderEvents } from '../../../../src/core/order-event.js';
import { encodePaymentDeadline } from '../../../../src/core/payment-deadline.js';
import { DEAD_LETTERS, GROUP_TOPICS, GROUPS, TOPICS } from '../../../../src/core/topics.js';
import {
  collectDeadLetters,
  type CollectDeadLettersPorts,
} from '../../../../src/operate/dead-letters/collect-dead-letters.js';
import type { Job } from '../../../../src/core/job.js';
import { KeeperWorld } from '../../orders/keeper-world.js';

const { topic: DEAD_TOPIC, collector: COLLECTOR } = DEAD_LETTERS[GROUPS.writer];

describe('keeper: collect-dead-letters', () => {
  let world: KeeperWorld;
  let sale: Sale;

  beforeEach(async () => {
    world = new KeeperWorld();
    sale = await world.openSale();
  });

  const create = (parts: Partial<CollectDeadLettersPorts> = {}): Job => {
    const { deadLetters, store, mysql, log, metrics } = world;
    const source = world.broker.source(DEAD_TOPIC, COLLECTOR, 30_000);
    const ports = { source, deadLetters, store, repository: mysql, log, metrics, ...parts };
    return collectDeadLetters(ports, { group: GROUPS.writer, topic: TOPICS.purchase });
  };
  const bury = (body: string, properties: Record<string, string> = {}): void =>
    world.broker.publishRaw(DEAD_TOPIC, body, properties);
  const unfinished = (): number => world.broker.unfinished(DEAD_TOPIC, COLLECTOR);
  const pending = async (): Promise<number> =>
    (await world.store.pendingSummary({ saleId: sale.saleId, bucket: 0 })).batches;

  it('parks messages on which the group gave up, and keeps their units held', async () => {
    const batch = await world.deducted(sale, ['u1*2']);
    bury(batch.body, { topic: TOPICS.purchase, saleId: batch.saleId, batchId: batch.batchId });
    await create().runOnce();
    expect(world.deadLetters.deadLetters).to.have.length(1);
    expect(world.deadLetters.deadLetters[0]).to.deep.include({
      group: GROUPS.writer,
      originTopic: TOPICS.purchase,
      saleId: batch.saleId,
      batchId: batch.batchId,
      body: batch.body,
      reason: 'retries_exhausted',
    });
    expect([await pending(), unfinished(), world.counts.parked]).to.deep.equal([0, 0, 1]);
    expect(world.store.bucket({ saleId: sale.saleId, bucket: 0 }).unitsLeft).to.equal(998);
  });

  it('writes the row, then removes the batch from pending, then acks [M8]', async () => {
    const batch = await world.deducted(sale, ['u1']);
    bury(batch.body);
    const order: string[] = [];
    const inner = world.broker.source(DEAD_TOPIC, COLLECTOR, 30_000);
    await create({
      deadLetters: {
        park: async (deadLetter) => {
          order.push('row');
          return world.deadLetters.park(deadLetter);
        },
      },
      store: {
        markRecorded: (of) => world.store.markRecorded(of),
        park: async (of) => {
          order.push('park');
          await world.store.park(of);
        },
      },
      source: {
        receive: async (max) =>
          (await inner.receive(max)).map((delivery) => ({
            ...delivery,
            ack: () => {
              order.push('ack');
              return delivery.ack();
            },
          })),
      },
    }).runOnce();
    expect(order).to.deep.equal(['row', 'park', 'ack']);
  });

  it('keeps a single row and counts once if a lost ack redelivers a message [M8]', async () => {
    const batch = await world.deducted(sale, ['u1']);
    bury(batch.body);
    world.broker.breakNext('ack_lost');
    const job = create();
    await job.runOnce();
    expect(unfinished(), 'the fault happened').to.equal(1);
    world.clock.advance(30_000);
    await job.runOnce();
    expect([world.deadLetters.deadLetters.length, unfinished(), world.counts.parked]).to.deep.equal([1, 0, 1]);
  });

  it('leaves the message with the broker while MySQL or Redis is down [M8]', async () => {
    const batch = await world.deducted(sale, ['u1']);
    bury(batch.body);
    const away = async (): Promise<never> => {
      throw new Error('away');
    };
    expect(
      await create({ deadLetters: { park: away } })
        .runOnce()
        .catch((error: Error) => error.message),
    ).to.equal('away');
    expect([await pending(), unfinished()]).to.deep.equal([1, 1]);
    world.clock.advance(30_000);
    await create({ store: { park: away, markRecorded: away } })
      .runOnce()
      .catch(() => undefined);
    expect([await pending(), unfinished(), world.deadLetters.deadLetters.length]).to.deep.equal([1, 1, 1]);
    world.clock.advance(30_000);
    await create().runOnce();
    expect([await pending(), unfinished(), world.deadLetters.deadLetters.length]).to.deep.equal([0, 0, 1]);
  });

  it('parks an unreadable message under the names in its properties [M7]', async () => {
    bury('{not json', { topic: TOPICS.redrive, saleId: '7', batchId: 'b1' });
    bury('{"v":3}');
    await create().runOnce();
    const [bad, later] = world.deadLetters.deadLetters;
    expect(bad).to.include({ reason: 'undecodable', saleId: '7', batchId: 'b1', originTopic: TOPICS.redrive });
    expect(later).to.include({ reason: 'unknown_version', saleId: null, batchId: null, originTopic: TOPICS.purchase });
    expect(unfinished()).to.equal(0);
  });

  it('marks a batch that was recorded after all, without a dead letter [M9]', async () => {
    const batch = await world.deducted(sale, ['u1', 'u2']);
    const orderIds = await world.recorded(batch, ['u2']);
    bury(batch.body);
    await create().runOnce();
    expect([world.deadLetters.deadLetters.length, await pending(), unfinished()]).to.deep.equal([0, 0, 0]);
    const { requests } = world.store.bucket({ saleId: sale.saleId, bucket: 0 });
    expect(requests.get('u1/k1')).to.deep.include({ state: 'ordered', orderId: orderIds[0] });
    expect(world.counts.markedLate).to.equal(1);
  });

  it('parks a batch that is recorded in part or under another batch [M8]', async () => {
    const batch = await world.deducted(sale, ['u1', 'u2']);
    await world.recorded({ ...batch, purchases: batch.purchases.slice(0, 1) });
    bury(batch.body);
    await create().runOnce();
    expect(world.deadLetters.deadLetters).to.have.length(1);
  });

  it('collects the messages before and after a failing message without delay', async () => {
    for (const user of ['u1', 'u2', 'u3']) bury((await world.deducted(sale, [user])).body);
    let parked = 0;
    const deadLetters: CollectDeadLettersPorts['deadLetters'] = {
      park: async (deadLetter) => {
        if (++parked === 2) throw new Error('away');
        return world.deadLetters.park(deadLetter);
      },
    };
    await create({ deadLetters })
      .runOnce()
      .catch(() => undefined);
    expect([world.deadLetters.deadLetters.length, unfinished()]).to.deep.equal([2, 1]);
    world.clock.advance(30_000);
    await create().runOnce();
    expect([world.deadLetters.deadLetters.length, unfinished(), await pending()]).to.deep.equal([3, 0, 0]);
  });

  it('parks deadlines and events of any group by their kind, and touches no batch [M7]', async () => {
    const { deadLetters, log, metrics, broker } = world;
    const fail = (): never => expect.fail('it is no batch');
    const never = { store: { park: fail, markRecorded: fail }, repository: { findByPurchases: fail } };
    const deadline = encodePaymentDeadline({ batchId: 'b7', saleId: '7', deadlineAtMs: 1, orders: ['11'] });
    const events = encodeOrderEvents([{ eventId: '1-paid', type: 'order.paid', saleId: '8', orders: ['11'], atMs: 1 }]);
    for (const [group, body] of [
      [GROUPS.expirer, deadline],
      [GROUPS.coupon, events],
      [GROUPS.notifier, events],
    ] as const) {
      const { topic, collector } = DEAD_LETTERS[group];
      broker.publishRaw(topic, body);
      broker.publishRaw(topic, '{');
      const ports = { source: broker.source(topic, collector, 30_000), deadLetters, ...never, log, metrics };
      await collectDeadLetters(ports, { group, topic: GROUP_TOPICS[group] }).runOnce();
      expect(broker.unfinished(topic, collector), group).to.equal(0);
    }
    const found = deadLetters.deadLetters.map(({ group, originTopic, saleId, batchId, reason }) =>
      [group, originTopic, saleId, batchId, reason].join(' '),
    );
    const { paymentDeadline, orderEvent } = TOPICS;
    expect(found).to.deep.equal([
      `${GROUPS.expirer} ${paymentDeadline} 7 b7 retries_exhausted`,
      `${GROUPS.expirer} ${paymentDeadline}   undecodable`,
      `${GROUPS.coupon} ${orderEvent} 8  retries_exhausted`,
      `${GROUPS.coupon} ${orderEvent}   undecodable`,
      `${GROUPS.notifier} ${orderEvent} 8  retries_exhausted`,
      `${GROUPS.notifier} ${orderEvent}   undecodable`,
    ]);
  });

  it('collects until the topic is empty, and pauses longer while it is', async () => {
    for (let message = 1; message <= 20; message++) bury(`{"v":${message + 2}}`);
    expect(await create().runOnce()).to.equal(undefined);
    expect([world.deadLetters.deadLetters.length, unfinished()]).to.deep.equal([20, 0]);
    expect(await create().runOnce()).to.equal('idle');
  });

  it('has the group in its name, so that failures can be told apart', () => {
    expect(create().name).to.equal(`collect-dead-letters:${GROUPS.writer}`);
  });
});
