import { expect } from 'chai';
import { decodeOrderEvents, type OrderEvent } from '../../../src/core/order-event.js';
import { decodePaymentDeadline, type PaymentDeadline } from '../../../src/core/payment-deadline.js';
import { GROUPS, TOPICS } from '../../../src/core/topics.js';
import { groupMoved, groupRecorded, publishMoved, publishRecorded } from '../../../src/orders/outbox-handlers.js';
import type { ReadableRow } from '../../../src/orders/relay-outbox.js';
import type { BatchRecorded, OrdersMoved } from '../../../src/core/ports/outbox.js';
import { MemoryTracing } from '../../helpers/memory/memory-tracing.js';
import { KeeperWorld } from './keeper-world.js';

const AT_MS = 1_700_000_000_000;

describe('keeper: events and deadlines of the outbox', () => {
  let world: KeeperWorld;
  beforeEach(() => {
    world = new KeeperWorld();
  });

  const recordedRow = (parts: Partial<BatchRecorded> = {}): ReadableRow<'batch_recorded'> => ({
    outboxId: '41',
    kind: 'batch_recorded',
    createdAtMs: AT_MS,
    attempts: 1,
    payload: { batchId: 'b1', saleId: '7', orders: ['11', '12'], failed: [], paymentWindowMs: 900_000, ...parts },
  });
  const events = (): OrderEvent[] =>
    world.broker.published(TOPICS.orderEvent).flatMap((body) => {
      const decoded = decodeOrderEvents(body);
      if (decoded.outcome !== 'decoded') throw new Error(decoded.detail);
      return decoded.events;
    });
  const deadlines = (): PaymentDeadline[] =>
    world.broker.published(TOPICS.paymentDeadline).map((body) => {
      const decoded = decodePaymentDeadline(body);
      if (decoded.outcome !== 'decoded') throw new Error(decoded.detail);
      return decoded.deadline;
    });

  it('publishes a batch in one message, with a deadline from the time of its rows', async () => {
    await publishRecorded(world.broker.orderChannels())([recordedRow({ failed: ['13'] })]);
    expect(world.broker.published(TOPICS.orderEvent)).to.have.length(1);
    expect(events()).to.deep.equal([
      { eventId: '41-created', type: 'order.created', saleId: '7', orders: ['11', '12'], atMs: AT_MS },
      { eventId: '41-failed', type: 'order.failed', saleId: '7', orders: ['13'], atMs: AT_MS },
    ]);
    expect(deadlines()).to.deep.equal([
      { batchId: 'b1', saleId: '7', orders: ['11', '12'], deadlineAtMs: AT_MS + 900_000 },
    ]);
  });

  it('records one span for the rows of recorded batches, linked to every batch', async () => {
    const tracing = new MemoryTracing();
    const [one, other] = ['a', 'b'].map((digit) => `00-${digit.repeat(32)}-${digit.repeat(16)}-01`) as [string, string];
    const rows = [
      recordedRow(),
      recordedRow({ traceparent: one }),
      recordedRow({ traceparent: other, failed: ['13'] }),
    ];
    await publishRecorded({ ...world.broker.orderChannels(), tracing })(rows);
    const [span] = tracing.spans;
    expect(tracing.spans).to.have.length(1);
    expect(span).to.deep.include({
      name: 'publish order events',
      kind: 'producer',
      traceId: 'a'.repeat(32),
      parentId: 'a'.repeat(16),
      links: ['a'.repeat(16), 'b'.repeat(16)],
      ended: true,
      error: null,
    });
    expect(span?.fields).to.deep.equal({ 'seckill.batches': 3, 'seckill.orders': 7 });
    for (const topic of [TOPICS.orderEvent, TOPICS.paymentDeadline]) {
      const [delivery] = await world.broker.source(topic, GROUPS.expirer, 30_000).receive(1);
      expect(delivery?.properties.get('traceparent'), topic).to.equal(`00-${span?.traceId}-${span?.spanId}-01`);
    }
    await publishRecorded({ ...world.broker.orderChannels(), tracing })([recordedRow()]);
    expect(tracing.spans, 'a row without a trace').to.have.length(1);
    const away = { publish: () => Promise.reject(new Error('no broker')) };
    await publishRecorded({ deadlines: away, events: away, tracing })(rows).catch(() => undefined);
    expect(tracing.spans[1]).to.include({ ended: true, error: 'Error: no broker' });
  });

  it('sends metadata with the event of its order', async () => {
    const metadata = { '12': '{"cart":"42"}', '13': '{"cart":"43"}' };
    await publishRecorded(world.broker.orderChannels())([recordedRow({ failed: ['13'], metadata })]);
    const row = { outboxId: '42', kind: 'orders_moved', createdAtMs: AT_MS, attempts: 1 } as const;
    const moved = { move: 'paid', saleId: '7', orders: ['11', '12'], metadata: { '12': '{"cart":"42"}' } } as const;
    await publishMoved(world.broker.orderChannels())([{ ...row, payload: moved }]);
    await publishRecorded(world.broker.orderChannels())([
      recordedRow({ failed: ['13'], metadata: { '12': '{"a":"b"}' } }),
    ]);
    expect(events().map((event) => [event.type, event.metadata])).to.deep.equal([
      ['order.created', { '12': { cart: '42' } }],
      ['order.failed', { '13': { cart: '43' } }],
      ['order.paid', { '12': { cart: '42' } }],
      ['order.created', { '12': { a: 'b' } }],
      ['order.failed', undefined],
    ]);
  });

  it('keeps a message with the largest metadata far below the broker limit', () => {
    const text = JSON.stringify({ a: '\u00e9'.repeat(252) });
    const orders = Array.from({ length: 100 }, (_, index) => `43123456789012${1000 + index}`);
    const metadata = Object.fromEntries(orders.map((orderId) => [orderId, text]));
    const rows = Array.from({ length: 32 }, () => recordedRow({ orders, metadata }));
    const groups = groupRecorded(rows);
    expect(groups.flat()).to.have.length(32);
    for (const group of groups) expect(Buffer.byteLength(JSON.stringify(group))).to.be.below(500_000);
  });

  it('refuses a row without orders and names its id, so that it can be repaired', async () => {
    const row = recordedRow({ orders: undefined as never });
    const error = await publishRecorded(world.broker.orderChannels())([row]).catch((thrown: Error) => thrown.message);
    expect(error).to.equal(`outbox row ${row.outboxId} has no list of orders`);
  });

  it('sets no deadline for failed orders', async () => {
    await publishRecorded(world.broker.orderChannels())([recordedRow({ orders: [], failed: ['13'] })]);
    expect(events().map(({ type }) => type)).to.deep.equal(['order.failed']);
    expect(deadlines()).to.deep.equal([]);
  });

  it('repeats the event ids when it publishes a row again [C3]', async () => {
    const publish = publishRecorded(world.broker.orderChannels());
    await publish([recordedRow()]);
    await publish([{ ...recordedRow(), attempts: 2 }]);
    expect(events().map(({ eventId }) => eventId)).to.deep.equal(['41-created', '41-created']);
  });

  it('combines batches of one sale in one deadline, when the last order is due', async () => {
    const later = { ...recordedRow({ batchId: 'b2', orders: ['14'] }), outboxId: '42', createdAtMs: AT_MS + 900 };
    await publishRecorded(world.broker.orderChannels())([recordedRow({ failed: ['13'] }), later]);
    expect(world.broker.published(TOPICS.orderEvent)).to.have.length(1);
    expect(events().map(({ eventId }) => eventId)).to.deep.equal(['41-created', '41-failed', '42-created']);
    expect(deadlines()).to.deep.equal([
      { batchId: 'b1', saleId: '7', orders: ['11', '12', '14'], deadlineAtMs: AT_MS + 900_900 },
    ]);
  });

  it('groups rows by sale and deadline, up to the size of one message', () => {
    const row = (outboxId: string, parts: Partial<BatchRecorded> = {}, laterMs = 0): ReadableRow<'batch_recorded'> => ({
      ...recordedRow(parts),
      outboxId,
      createdAtMs: AT_MS + laterMs,
    });
    const ids = (groups: readonly (readonly { outboxId: string }[])[]): string[] =>
      groups.map((group) => group.map(({ outboxId }) => outboxId).join('+'));
    const rows = [row('1'), row('2', { saleId: '8' }), row('3', {}, 1_000), row('4', {}, 1_001), row('5')];
    expect(ids(groupRecorded(rows))).to.deep.equal(['1+3+5', '2', '4']);
    const many = Array.from({ length: 40 }, (_, index) => row(String(index)));
    expect(groupRecorded(many).map((group) => group.length)).to.deep.equal([32, 8]);
    const orders = Array.from({ length: 4_999 }, (_, index) => String(index + 1));
    const big = ['1', '2', '3'].map((id) => row(id, { orders, failed: ['9000001'] }));
    expect(ids(groupRecorded(big))).to.deep.equal(['1+2', '3']);

    const moved = (outboxId: string, move: OrdersMoved['move'], saleId: string): ReadableRow<'orders_moved'> => ({
      outboxId,
      kind: 'orders_moved',
      createdAtMs: AT_MS,
      attempts: 1,
      payload: { move, saleId, orders: ['11'] },
    });
    const moves = [
      moved('1', 'paid', '7'),
      moved('2', 'expired', '7'),
      moved('3', 'paid', '7'),
      moved('4', 'paid', '8'),
    ];
    expect(ids(groupMoved(moves))).to.deep.equal(['1+3', '2', '4']);
  });

  it('finishes only when the broker has stored both messages', async () => {
    for (const fault of ['publish_fails', 'publish_reply_lost'] as const) {
      world.broker.breakNext(fault);
      const result = publishRecorded(world.broker.orderChannels())([recordedRow()]);
      expect(await result.catch((error: Error) => error.name), fault).to.equal('OperationalError');
    }
  });

  it('gives each kind of move its own event type', async () => {
    for (const move of ['paid', 'cancelled', 'expired'] as const) {
      const row = { outboxId: '42', kind: 'orders_moved', createdAtMs: AT_MS, attempts: 1 } as const;
      await publishMoved(world.broker.orderChannels())([{ ...row, payload: { move, saleId: '7', orders: ['11'] } }]);
    }
    expect(events()).to.deep.equal(
      ['paid', 'cancelled', 'expired'].map((move) => ({
        eventId: `42-${move}`,
        type: `order.${move}`,
        saleId: '7',
        orders: ['11'],
        atMs: AT_MS,
      })),
    );
  });
});
