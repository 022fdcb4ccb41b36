import { expect } from 'chai';
import type {
  CheckBackAnswer,
  DeliverySource,
  HalfMessage,
  OpenHalf,
  PurchaseChannel,
} from '../../src/core/ports/channels.js';
import { sealBatch, type Batch } from '../../src/core/batch.js';
import { SIGNATURE_PROPERTY, type SignatureVerdict } from '../../src/core/message-signatures.js';
import { TOPICS } from '../../src/core/topics.js';
import {
  BROKER_WORLDS,
  freshBatch,
  nextDelivery,
  PURCHASES,
  REDRIVES_SEEN,
  type BrokerWorld,
} from './broker-worlds.js';
import { onEachWorld } from './on-each-world.js';

/** The broker asks after 10 s and then every 5 s, sometimes an API of a concurrent suite. */
const CHECKED_WITHIN_MS = 90_000;
/** Empty receives, 5 s each, in which a rolled-back message must not arrive. */
const ROUNDS_AFTER_CHECK = 2;
/** A visible message arrives at once, after an empty receive of 5 s. */
const VISIBLE_WITHIN_MS = 30_000;

onEachWorld<BrokerWorld>('contract PurchaseChannel', BROKER_WORLDS, (world) => {
  let channel: PurchaseChannel & { close(): Promise<void> };
  let source: DeliverySource;
  let asked: string[];
  let verdicts: Map<string, SignatureVerdict>;
  let answers: Map<string, () => CheckBackAnswer>;

  before(async () => {
    channel = await world.purchaseChannel(async (half) => {
      const { batchId } = JSON.parse(half.body) as Batch;
      asked.push(batchId);
      verdicts.set(batchId, verdictOf(half));
      return answers.get(batchId)?.() ?? 'no_answer';
    });
    source = await world.source(PURCHASES.topic, PURCHASES.group);
  });
  beforeEach(() => {
    asked = [];
    verdicts = new Map();
    answers = new Map();
  });

  /** Checks the signature of a message of the purchase topic. */
  const verdictOf = ({ body, properties }: OpenHalf): SignatureVerdict =>
    world.signatures.check(TOPICS.purchase, body, properties.get(SIGNATURE_PROPERTY));

  const sendHalf = async (batch: Batch): Promise<HalfMessage> => {
    const half = await channel.sendHalf(batch);
    if (half === 'unavailable' || half === 'outcome_unknown') throw new Error(`half message: ${half}`);
    return half;
  };

  it('delivers a committed half message unchanged, with the properties that a dead letter needs', async () => {
    const batch = freshBatch();
    await (await sendHalf(batch)).commit();

    const delivery = await nextDelivery(world, source, batch, VISIBLE_WITHIN_MS);
    expect(delivery?.body).to.equal(batch.body);
    expect(delivery && verdictOf(delivery)).to.equal('signed');
    expect(delivery?.attempt).to.equal(1);
    expect(delivery?.checkedBack).to.equal(false);
    const properties = Object.fromEntries(delivery?.properties ?? []);
    expect(properties).to.include({ topic: PURCHASES.topic, saleId: batch.saleId, batchId: batch.batchId });
    expect(await delivery?.ack()).to.equal(true);
  });

  it('carries the traceparent as a property only if the trace of a batch is recorded', async () => {
    const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
    const [traced, other] = [sealBatch({ ...freshBatch(), traceparent }), freshBatch()];
    for (const batch of [traced, other]) {
      await (await sendHalf(batch)).commit();
      const delivery = await nextDelivery(world, source, batch, VISIBLE_WITHIN_MS);
      expect(delivery?.properties.get('traceparent')).to.equal(batch === traced ? traceparent : undefined);
      expect(delivery && verdictOf(delivery)).to.equal('signed');
      await delivery?.ack();
    }
  });

  it('accepts a second commit, and does not confirm a rollback after a commit [T4]', async () => {
    const batch = freshBatch();
    const half = await sendHalf(batch);
    await half.commit();
    await half.commit();
    expect(await half.rollback()).to.equal(false);
    await (await nextDelivery(world, source, batch, VISIBLE_WITHIN_MS))?.ack();
  });

  it('checks an open half message back, and delivers the committed message with that mark [T3]', async () => {
    const batch = freshBatch();
    answers.set(batch.batchId, () => 'commit');
    await sendHalf(batch);

    const delivery = await nextDelivery(world, source, batch, CHECKED_WITHIN_MS);
    expect(asked, 'hidden until then').to.include(batch.batchId);
    expect(verdicts.get(batch.batchId), 'as it was asked about').to.equal('signed');
    expect(delivery?.body).to.equal(batch.body);
    expect(delivery?.checkedBack).to.equal(true);
    await delivery?.ack();
  });

  it('never delivers a message that its sender or the check-back rolled back [T2, T5]', async () => {
    const bySender = freshBatch();
    expect(await (await sendHalf(bySender)).rollback()).to.equal(true);
    const byCheck = freshBatch();
    answers.set(byCheck.batchId, () => 'rollback');
    await sendHalf(byCheck);

    const delivered: (string | undefined)[] = [];
    const untilMs = world.nowMs() + CHECKED_WITHIN_MS;
    for (let rounds = 0; rounds < ROUNDS_AFTER_CHECK && world.nowMs() < untilMs;) {
      for (const { properties } of await source.receive(32)) delivered.push(properties.get('batchId'));
      if (asked.includes(byCheck.batchId)) rounds++;
    }
    for (const { batchId } of [bySender, byCheck]) expect(delivered).not.to.include(batchId);
    expect(asked).to.include(byCheck.batchId);
    expect(asked).not.to.include(bySender.batchId);
  });

  it('asks again if the check-back throws or gives no answer [T10]', async () => {
    const batch = freshBatch();
    const replies = [
      (): CheckBackAnswer => {
        throw new Error('redis is down');
      },
      (): CheckBackAnswer => 'no_answer',
    ];
    answers.set(batch.batchId, () => (replies.shift() ?? ((): CheckBackAnswer => 'commit'))());
    await sendHalf(batch);

    const delivery = await nextDelivery(world, source, batch, CHECKED_WITHIN_MS);
    expect(asked.filter((batchId) => batchId === batch.batchId)).to.have.length.at.least(3);
    expect(delivery?.checkedBack).to.equal(true);
    await delivery?.ack();
  });

  it('delivers a republished batch on the re-drive topic', async () => {
    const batch = freshBatch();
    await (await world.redriveChannel()).publish(batch);
    const redrives = await world.source(REDRIVES_SEEN.topic, REDRIVES_SEEN.group);
    const delivery = await nextDelivery(world, redrives, batch, VISIBLE_WITHIN_MS);
    expect(delivery?.body).to.equal(batch.body);
    expect(delivery?.properties.get('topic')).to.equal(REDRIVES_SEEN.topic);
    await delivery?.ack();
  });

  it('stores nothing and reports the reason when the channel is closed', async () => {
    await channel.close();
    expect(await channel.sendHalf(freshBatch())).to.equal('unavailable');
  });
});
