import { expect } from 'chai';
import type { Batch } from '../../src/core/batch.js';
import { DEAD_LETTERS, WRITER_RETRIES_MAX } from '../../src/core/topics.js';
import type { Delivery, DeliverySource, RedriveChannel } from '../../src/core/ports/channels.js';
import { BROKER_WORLDS, freshBatch, nextDelivery, REDRIVES, type BrokerWorld } from './broker-worlds.js';
import { onEachWorld } from './on-each-world.js';

const INVISIBLE_MS = 5_000;
const VISIBLE_WITHIN_MS = 30_000;
/** The broker adds 2 to 5 s to every delay, and an empty receive takes 5 s. */
const LATE_MS = 45_000;
const DEAD_LETTER_WITHIN_MS = 60_000;

onEachWorld<BrokerWorld>('contract DeliverySource', BROKER_WORLDS, (world) => {
  let channel: RedriveChannel;
  let source: DeliverySource & { close(): Promise<void> };

  before(async () => {
    channel = await world.redriveChannel();
    source = await world.source(REDRIVES.topic, REDRIVES.group, INVISIBLE_MS);
  });

  const receive = async (batch: Batch, withinMs: number) => {
    const delivery = await nextDelivery(world, source, batch, withinMs);
    if (!delivery) throw new Error(`batch ${batch.batchId} did not come within ${withinMs} ms`);
    return delivery;
  };

  it('delivers an acked message only once', async () => {
    const publishAndAck = async () => {
      const batch = freshBatch();
      const startedAtMs = world.nowMs();
      await channel.publish(batch);
      expect(await (await receive(batch, LATE_MS)).ack()).to.equal(true);
      return { batch, tookMs: world.nowMs() - startedAtMs };
    };
    let acked = await publishAndAck();
    // An accepted ack at the end of the invisible time may be too late, so the test uses another message.
    for (let tries = 1; acked.tookMs > INVISIBLE_MS / 2 && tries < 5; tries++) acked = await publishAndAck();
    expect(await nextDelivery(world, source, acked.batch, INVISIBLE_MS + 5_000)).to.equal(null);
  });

  it('redelivers a message as the next attempt when the ack is late, and refuses the late ack [M10]', async () => {
    const batch = freshBatch();
    await channel.publish(batch);
    const first = await receive(batch, VISIBLE_WITHIN_MS);
    await world.elapse(INVISIBLE_MS + 500);
    expect(await first.ack(), 'late ack').to.equal(false);

    const second = await receive(batch, LATE_MS);
    expect(second.attempt).to.equal(2);
    expect(second.messageId).to.equal(first.messageId);
    expect(await second.ack()).to.equal(true);
  });

  it('redelivers after the delay of retryAfter, before the invisible time ends', async () => {
    const batch = freshBatch();
    await channel.publish(batch);
    const first = await receive(batch, VISIBLE_WITHIN_MS);
    const backAtMs = world.nowMs() + 1_000;
    await first.retryAfter(1_000);
    expect(await first.ack(), 'given back').to.equal(false);

    const second = await receive(batch, LATE_MS);
    expect(world.nowMs()).to.be.at.least(backAtMs);
    expect(second.attempt).to.equal(2);
    await second.ack();
  });

  it('turns a message into a dead letter after its last retry, with properties that name its origin [M7]', async () => {
    const batch = freshBatch();
    await channel.publish(batch);
    let messageId = '';
    for (let attempt = 1; attempt <= WRITER_RETRIES_MAX + 1; attempt++) {
      const delivery = await receive(batch, LATE_MS);
      expect(delivery.attempt).to.equal(attempt);
      messageId = delivery.messageId;
      await delivery.retryAfter(0);
    }
    const { topic, collector } = DEAD_LETTERS[REDRIVES.group];
    const deadLetters = await world.source(topic, collector);
    // The broker moves a visible message only when its group receives, on a busy machine several times.
    const endsAtMs = world.nowMs() + DEAD_LETTER_WITHIN_MS;
    let deadLetter: Delivery | null = null;
    while (deadLetter === null && world.nowMs() < endsAtMs) {
      expect(await nextDelivery(world, source, batch, 1), 'a further attempt').to.equal(null);
      deadLetter = await nextDelivery(world, deadLetters, batch, 1);
    }
    expect(deadLetter?.messageId).to.equal(messageId);
    expect(deadLetter?.body).to.equal(batch.body);
    expect(deadLetter?.attempt).to.be.greaterThan(WRITER_RETRIES_MAX + 1);
    const properties = Object.fromEntries(deadLetter?.properties ?? []);
    expect(properties).to.include({ topic: REDRIVES.topic, saleId: batch.saleId, batchId: batch.batchId });
    await deadLetter?.ack();
  });

  it('lets a receive that was open at close be acked, and returns empty lists afterwards', async () => {
    const batch = freshBatch();
    const receiving = nextDelivery(world, source, batch, 1);
    await channel.publish(batch);
    const closing = source.close();
    const delivery = await receiving;
    if (delivery) expect(await delivery.ack()).to.equal(true); // A memory receive does not wait.
    await closing;
    expect(await source.receive(32)).to.deep.equal([]);
  });
});
