import { expect } from 'chai';
import { newBatchId, sealBatch, type Batch } from '../../src/core/batch.js';
import { composeOrderId } from '../../src/core/order-id.js';
import { GROUPS, TOPICS } from '../../src/core/topics.js';
import { mysqlWorld, newSale, type MysqlWorld } from '../contract/repository-worlds.js';
import { PURCHASES, REDRIVES, nextDelivery, rocketmqWorld, type BrokerWorld } from '../contract/broker-worlds.js';
import { STORE_WORLDS, firstBucket, openSale, type StoreWorld } from '../contract/store-worlds.js';
import { batchOf, certainEntry, liveOrderOf, purchasesOf } from '../helpers/sales.js';
import { useSystem } from '../helpers/system.js';

/** The broker asks about an open half message after 10 s, then every 5 s. */
const COMES_WITHIN_MS = 90_000;
const WINDOW_MS = 900_000;

describe('the adapters over TLS with the documented rights', () => {
  useSystem(); // creates topics and tables
  const redisWorld = new Map<string, () => Promise<StoreWorld>>(STORE_WORLDS).get('redis') as () => Promise<StoreWorld>;
  let redis: StoreWorld;
  let mysql: MysqlWorld;
  let broker: BrokerWorld;
  before(async () => {
    [redis, mysql, broker] = await Promise.all([redisWorld(), mysqlWorld(), rocketmqWorld()]);
  });
  after(() => Promise.all([redis?.close(), mysql?.close(), broker?.close()]));

  const batchFor = (saleId: string): Batch => {
    const purchases = purchasesOf('ann', 'bob');
    return sealBatch({
      ...{ batchId: newBatchId(), saleId, bucket: 0, epoch: 1 },
      ...{ createdAtMs: Date.now(), traceparent: '', purchases },
    });
  };

  it('take units, find them, take over, record, return units and notify a buyer through Redis', async () => {
    const sale = await openSale(redis, { stock: 10, limitPerBuyer: 4 });
    const bucket = firstBucket(sale);
    const [first, second] = [batchOf(sale, purchasesOf('ann')), batchOf(sale, purchasesOf('bob'))];
    for (const batch of [first, second]) expect(await redis.stock.deduct(batch)).to.deep.equal({ outcome: 'deducted' });
    expect(await redis.stock.resolve(first)).to.equal('deducted');
    const terms = { olderThanMs: -1, leaseMs: 1000, max: 10, fromMs: 0 };
    expect((await redis.batches.takeDue(bucket, terms)).batches).to.have.length(2);
    const heard = new Promise((resolve) => {
      const end = redis.notifications.listen(
        { saleId: sale.saleId, userId: 'ann', requestId: 'k1' },
        (notification) => {
          if (notification === null)
            void redis.batches.markRecorded([{ batch: first, orders: [liveOrderOf('ann', '1')] }]);
          else resolve(end());
        },
      );
    });
    await heard;
    const release = {
      ...bucket,
      userId: 'bob',
      requestId: 'k1',
      orderId: '2',
      batchId: second.batchId,
      withUnits: true,
    };
    expect(await redis.batches.release([release])).to.deep.equal(['released']);
    expect(await certainEntry(redis.stock.findRequest(bucket, 'ann', 'k1'))).to.include({ state: 'ordered' });
    expect((await redis.stock.readSale(bucket))?.unitsLeft).to.equal(9);
    await redis.snapshots.write(sale.saleId, sale);
    expect(await redis.snapshots.read(sale.saleId)).not.to.equal(null);
  });

  it('write orders with their outbox row and take a slot in MySQL', async () => {
    const sale = await mysql.sales.create(newSale());
    const batch = batchFor(sale.saleId);
    const orders = batch.purchases.map((purchase, n) => ({
      ...{ orderId: composeOrderId(Date.now(), 1, 'any', n), batch, purchase, failure: null },
    }));
    const terms = await mysql.orders.termsOf([sale.saleId]);
    const plan = { terms, orders, releases: [], oneByOne: new Set<string>(), paymentWindowMs: WINDOW_MS };
    expect(await mysql.orders.write(plan)).to.deep.equal({ outcome: 'written', surplus: new Set() });
    expect((await mysql.outboxOf(batch.batchId)).recorded).to.have.length(1);
    expect(await mysql.violations(sale.saleId)).to.deep.equal([]);
  });

  it('deliver every kind of message, check back an open half and read progress in RocketMQ', async () => {
    const [channel, purchases] = await Promise.all([
      broker.purchaseChannel(async () => 'commit'),
      broker.source(PURCHASES.topic, PURCHASES.group),
    ]);
    const [sent, open] = [batchFor('4242'), batchFor('4242')];
    for (const batch of [sent, open]) {
      const half = await channel.sendHalf(batch);
      if (typeof half === 'string') throw new Error(half);
      if (batch === sent) await half.commit();
    }
    for (const batch of [sent, open]) {
      const delivery = await nextDelivery(broker, purchases, batch, COMES_WITHIN_MS);
      expect(delivery?.checkedBack).to.equal(batch === open);
      expect(await delivery?.ack()).to.equal(true);
    }
    const again = batchFor('4242');
    await (await broker.redriveChannel()).publish(again);
    const redrives = await broker.source(REDRIVES.topic, REDRIVES.group);
    await (await nextDelivery(broker, redrives, again, COMES_WITHIN_MS))?.retryAfter(0);
    expect((await nextDelivery(broker, redrives, again, COMES_WITHIN_MS))?.attempt).to.equal(2);

    const due = { batchId: newBatchId(), saleId: '4242', deadlineAtMs: Date.now() + 1000, orders: ['1'] };
    await (await broker.deadlineChannel()).publish(due);
    const event = { eventId: newBatchId(), type: 'order.paid', saleId: '4242', orders: ['1'], atMs: 1 } as const;
    await (await broker.orderEventChannel()).publish([event]);
    for (const [topic, group, id] of [
      [TOPICS.paymentDeadline, GROUPS.expirer, due.batchId],
      [TOPICS.orderEvent, GROUPS.notifier, event.eventId],
    ] as const) {
      const source = await broker.source(topic, group);
      const untilMs = Date.now() + COMES_WITHIN_MS;
      let isThere = false;
      while (!isThere && Date.now() < untilMs)
        for (const delivery of await source.receive(32)) {
          isThere ||= delivery.body.includes(id);
          await delivery.ack();
        }
      expect(isThere, topic).to.equal(true);
    }
    expect((await broker.progress([PURCHASES]).ends()).size).to.be.above(0);
  });
});
