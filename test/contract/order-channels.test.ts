import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { decodeOrderEvents, type OrderEvent } from '../../src/core/order-event.js';
import { decodePaymentDeadline, type PaymentDeadline } from '../../src/core/payment-deadline.js';
import { SIGNATURE_PROPERTY, type SignatureVerdict } from '../../src/core/message-signatures.js';
import { DEAD_LETTERS, GROUPS, TOPICS } from '../../src/core/topics.js';
import type { Delivery, DeliverySource, DeadlineChannel, OrderEventChannel } from '../../src/core/ports/channels.js';
import { BROKER_WORLDS, type BrokerWorld } from './broker-worlds.js';
import { onEachWorld } from './on-each-world.js';

/** Includes an empty receive of 5 s, and the timer of the broker, which counts in seconds. */
const COMES_WITHIN_MS = 40_000;
const DELAY_MS = 6_000;
/** A group that no concurrent suite uses. */
const EVENT_GROUP = DEAD_LETTERS[GROUPS.notifier].collector;

onEachWorld<BrokerWorld>('contract DeadlineChannel and OrderEventChannel', BROKER_WORLDS, (world) => {
  let deadlines: DeadlineChannel;
  let events: OrderEventChannel;
  let dueSource: DeliverySource;
  let eventSource: DeliverySource;

  before(async () => {
    [deadlines, events, dueSource, eventSource] = await Promise.all([
      world.deadlineChannel(),
      world.orderEventChannel(),
      world.source(TOPICS.paymentDeadline, GROUPS.expirer),
      world.source(TOPICS.orderEvent, EVENT_GROUP),
    ]);
  });

  /** Returns the next message whose body contains the id. Acks and skips other messages. */
  const next = async (source: DeliverySource, id: string, withinMs: number): Promise<Delivery> => {
    const untilMs = world.nowMs() + withinMs;
    do {
      const deliveries = await source.receive(32);
      await Promise.all(deliveries.map((delivery) => delivery.ack()));
      const ours = deliveries.find((delivery) => delivery.body.includes(`"${id}"`));
      if (ours) return ours;
    } while (world.nowMs() < untilMs);
    throw new Error(`nothing of ${id} came within ${withinMs} ms`);
  };
  const fresh = (): string => randomBytes(12).toString('base64url');
  const verdictOf = (topic: string, { body, properties }: Delivery): SignatureVerdict =>
    world.signatures.check(topic, body, properties.get(SIGNATURE_PROPERTY));

  const deadlineIn = (ms: number): PaymentDeadline => ({
    batchId: fresh(),
    saleId: '4242',
    deadlineAtMs: world.nowMs() + ms,
    orders: ['11', '12'],
  });

  it('delivers a deadline unchanged, not early, and with the properties that a dead letter needs', async () => {
    const deadline = deadlineIn(DELAY_MS);
    await deadlines.publish(deadline);
    const delivery = await next(dueSource, deadline.batchId, DELAY_MS + COMES_WITHIN_MS);
    expect(world.nowMs(), 'not before').to.be.at.least(deadline.deadlineAtMs);
    expect(decodePaymentDeadline(delivery.body)).to.deep.equal({ outcome: 'decoded', deadline });
    const { batchId, saleId } = deadline;
    expect(Object.fromEntries(delivery.properties)).to.include({ topic: TOPICS.paymentDeadline, saleId, batchId });
    expect(verdictOf(TOPICS.paymentDeadline, delivery)).to.equal('signed');
  });

  it('names the publishing span in both messages, if a span exists', async () => {
    const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
    const deadline = deadlineIn(-3_600_000);
    await deadlines.publish(deadline, traceparent);
    const due = await next(dueSource, deadline.batchId, COMES_WITHIN_MS);
    const eventId = fresh();
    await events.publish([{ eventId, type: 'order.paid', saleId: '4242', orders: ['1'], atMs: 1 }], traceparent);
    const event = await next(eventSource, eventId, COMES_WITHIN_MS);
    expect([due, event].map(({ properties }) => properties.get('traceparent'))).to.deep.equal([
      traceparent,
      traceparent,
    ]);
  });

  it('delivers a past deadline at once', async () => {
    const deadline = deadlineIn(-3_600_000);
    await deadlines.publish(deadline);
    await next(dueSource, deadline.batchId, COMES_WITHIN_MS);
  });

  it('delivers the events of one transaction as one message', async () => {
    const id = fresh();
    const sent: OrderEvent[] = (['order.created', 'order.failed'] as const).map((type) => ({
      eventId: `${id}-${type.slice(6)}`,
      type,
      saleId: '4242',
      orders: ['11'],
      atMs: 1_700_000_000_000,
    }));
    await events.publish(sent);
    const delivery = await next(eventSource, `${id}-created`, COMES_WITHIN_MS);
    expect(decodeOrderEvents(delivery.body)).to.deep.equal({ outcome: 'decoded', events: sent });
    expect(Object.fromEntries(delivery.properties)).to.include({ topic: TOPICS.orderEvent, saleId: '4242' });
    expect(verdictOf(TOPICS.orderEvent, delivery)).to.equal('signed');
  });
});
