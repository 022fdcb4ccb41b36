import { expect } from 'chai';
import { LISTENER_GROUP } from '../chaos/harness/listeners.js';
import { newBatchId } from '../../src/core/batch.js';
import { GROUPS, TOPICS } from '../../src/core/topics.js';
import type { BrowseFrom, NamedGroup } from '../../src/operate/broker/message-inspection.js';
import { RocketmqInspection } from '../../src/operate/broker/rocketmq-inspection.js';
import { until } from '../chaos/harness/wait.js';
import { accessIn } from '../helpers/broker.js';
import { stackEnv } from '../helpers/stack-env.js';
import { freshBatch, REDRIVES_INSPECTED, rocketmqWorld, type BrokerWorld } from './broker-worlds.js';

describe('RocketMQ inspection', () => {
  let world: BrokerWorld;
  let inspection: RocketmqInspection;
  before(async () => {
    const env = stackEnv();
    world = await rocketmqWorld();
    inspection = new RocketmqInspection(env.NAMESRV_ADDR, accessIn(env));
  });
  after(() => world?.close());

  const groupOf = async (named: NamedGroup) =>
    (await inspection.groups([named])).find(({ topic }) => topic === named.topic);

  it('counts undelivered messages as the lag of a group, and reports the age of the oldest message', async () => {
    const source = await world.source(REDRIVES_INSPECTED.topic, REDRIVES_INSPECTED.group);
    const channel = await world.redriveChannel();
    const publish = async (count: number): Promise<void> => {
      for (let sent = 0; sent < count; sent++) await channel.publish(freshBatch());
    };
    const isEmpty = async (): Promise<boolean> => {
      await source.receive(32); // No message is acked.
      return (await groupOf(REDRIVES_INSPECTED))?.lag === 0;
    };
    await publish(40);
    await until('all were given', isEmpty);
    await publish(2);
    const waiting = await groupOf(REDRIVES_INSPECTED);
    expect(waiting?.lag, 'with a few of other suites').to.be.within(2, 20);
    expect(waiting?.oldestMs).to.be.within(0, 60_000);
    expect(waiting?.clients).to.equal(1);
    await until('all were given again', isEmpty);
    expect((await groupOf(REDRIVES_INSPECTED))?.clients).to.equal(1);
  });

  it('finds a message by key and by offset, with its body and properties', async () => {
    const channel = await world.redriveChannel();
    const batch = freshBatch();
    await channel.publish(batch);
    const [found] = await inspection.messagesOfKey(TOPICS.redrive, batch.batchId);
    expect(found).to.include({ topic: TOPICS.redrive, body: batch.body });
    expect(found?.properties.KEYS).to.equal(batch.batchId);
    const from = { queueId: found!.queueId, offset: found!.queueOffset };
    const browse = async (topic: string, begin: BrowseFrom | null, max: number) =>
      (await inspection.browse(topic, begin, { max, bodiesMax: 1_000_000 })).messages;
    expect(await browse(TOPICS.redrive, from, 1)).to.deep.equal([found]);
    expect(await browse(TOPICS.redrive, null, 20)).to.deep.include(found);
    for (const id of [found!.properties.UNIQ_KEY as string, found!.offsetId])
      expect(await inspection.messagesOfId(TOPICS.redrive, id), id).to.deep.equal([found]);
    const since = await browse(TOPICS.redrive, { sinceMs: found!.storedAtMs }, 100);
    expect(since).to.deep.include(found);
    expect(Math.min(...since.map(({ storedAtMs }) => storedAtMs))).to.be.at.least(found!.storedAtMs);
    expect(await browse(TOPICS.redrive, { sinceMs: Date.now() + 60_000 }, 100)).to.deep.equal([]);
    expect(await inspection.messagesOfId(TOPICS.redrive, 'F'.repeat(32)), 'of no place').to.deep.equal([]);
    expect(await inspection.messagesOfKey(TOPICS.redrive, newBatchId())).to.deep.equal([]);
    expect(await inspection.messagesOfKey('no-such-topic', batch.batchId)).to.deep.equal([]);
    expect(await browse('no-such-topic', null, 5)).to.deep.equal([]);
  });

  it('shows a half message with its batch until it is resolved, and never a committed message', async () => {
    const channel = await world.purchaseChannel(async () => 'no_answer');
    const [left, committed] = [freshBatch(), freshBatch()];
    const half = await channel.sendHalf(left);
    const other = await channel.sendHalf(committed);
    if (typeof half === 'string' || typeof other === 'string') throw new Error('the broker took no half message');
    await other.commit();
    const openOf = async (batchId: string) => (await inspection.halves()).open.find(({ key }) => key === batchId);
    const found = await openOf(left.batchId);
    expect(found).to.include({
      topic: TOPICS.purchase,
      checks: 0,
      saleId: left.saleId,
      purchases: left.purchases.length,
    });
    expect(found?.ageMs).to.be.within(0, 60_000);
    await until('the answer is written down', async () => (await openOf(committed.batchId)) === undefined);
    // The broker asks about this earlier message before it reaches the other message.
    expect(await openOf(left.batchId), 'without an answer it stays').to.include({ checks: 0 });
    await half.rollback();
    await channel.close(); // Otherwise the broker would ask this producer about half messages of other suites.
  });

  it('shows brokers, groups, dead letters, half messages and their producers on one screen', async () => {
    const status = await inspection.status([{ group: GROUPS.writer, topic: TOPICS.purchase }]);
    expect(status.brokers).to.have.length(1);
    expect(status.brokers[0]).to.include({ name: 'broker-a', down: null });
    expect(status.brokers[0]?.version).to.match(/^V5_/);
    expect(status.brokers[0]?.diskUsed).to.be.within(0.001, 1);
    expect(status.deadLetters.map(({ topic }) => topic)).to.include(`%DLQ%${GROUPS.writer}`);
    expect(status.halves.more).to.equal(false);
    expect(status.producers[TOPICS.redrive]).to.be.at.least(1);
    expect((await inspection.producers()).map(({ group }) => group)).to.include(TOPICS.redrive);
    expect((await inspection.consumers(REDRIVES_INSPECTED.group)).length).to.be.at.least(1);
    expect(await inspection.consumers(LISTENER_GROUP)).to.deep.equal([]);
    const topics = await inspection.topics();
    expect(topics.find(({ topic }) => topic === TOPICS.purchase)).to.include({ type: 'TRANSACTION', queues: 8 });
  });

  it('fails with a reason if no name server answers, and tries a second name server', async () => {
    const { NAMESRV_ADDR, ...env } = stackEnv();
    const none = await new RocketmqInspection('127.0.0.1:1', null).topics().catch((error: Error) => error.message);
    expect(none).to.match(/^NAMESRV_ADDR 127\.0\.0\.1:1: /);
    const two = new RocketmqInspection(`127.0.0.1:1;${NAMESRV_ADDR}`, accessIn(env));
    expect((await two.topics()).length).to.be.greaterThan(0);
  });
});
