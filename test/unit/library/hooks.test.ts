import { expect } from 'chai';
import { encodeOrderEvents, type OrderEvent, type OrderEventType } from '../../../src/core/order-event.js';
import type { Delivery } from '../../../src/core/ports/channels.js';
import { callHooks, renewedByTimer } from '../../../src/library/hooks.js';
import { SteppedClock } from '../../helpers/memory/stepped-clock.js';

const eventOf = (type: OrderEventType, eventId = `1-${type.slice(6)}`): OrderEvent => ({
  eventId,
  type,
  saleId: '7',
  orders: ['99'],
  atMs: 1_000,
});
const TYPES = ['order.created', 'order.failed', 'order.paid', 'order.cancelled', 'order.expired'] as const;

describe('dispatch of hooks', () => {
  it('calls the hook of each event kind with the event', async () => {
    const called: string[] = [];
    const note = (name: string) => (event: OrderEvent) => void called.push(`${name} ${event.type} ${event.orders}`);
    const handle = callHooks({
      onOrdered: note('ordered'),
      onFailed: note('failed'),
      onPaid: note('paid'),
      onCancelled: note('cancelled'),
      onExpired: note('expired'),
    });
    expect(await handle(encodeOrderEvents(TYPES.map((type) => eventOf(type))))).to.deep.equal({ outcome: 'done' });
    expect(called).to.deep.equal([
      'ordered order.created 99',
      'failed order.failed 99',
      'paid order.paid 99',
      'cancelled order.cancelled 99',
      'expired order.expired 99',
    ]);
  });

  it('acknowledges events without a hook', async () => {
    const body = encodeOrderEvents(TYPES.map((type) => eventOf(type)));
    expect(await callHooks({})(body)).to.deep.equal({ outcome: 'done' });
  });

  it('asks for redelivery of the unfinished events if a hook throws or rejects', async () => {
    const called: string[] = [];
    let fails = 2;
    const handle = callHooks({
      onOrdered: ({ eventId }) => void called.push(eventId),
      async onPaid({ eventId }) {
        called.push(eventId);
        if (fails-- > 0) throw new Error('the warehouse is away');
      },
    });
    const body = encodeOrderEvents([eventOf('order.created', 'a'), eventOf('order.paid', 'b')]);
    for (const _ of [1, 2]) {
      const rejected = await handle(body).catch((error: unknown) => error);
      expect(rejected).to.be.an('error').with.property('message', 'the warehouse is away');
    }
    expect(await handle(body)).to.deep.equal({ outcome: 'done' });
    expect(await handle(body), 'a copy').to.deep.equal({ outcome: 'done' });
    expect(called).to.deep.equal(['a', 'b', 'b', 'b']);
  });

  it('calls the other hooks if one hook throws, and repeats only the failed hook', async () => {
    const called: string[] = [];
    let fails = 2;
    const handle = callHooks({
      onFailed({ eventId }) {
        called.push(eventId);
        if (fails-- > 0) throw new Error('the mail is away');
      },
      onOrdered: ({ eventId }) => void called.push(eventId),
      onPaid: ({ eventId }) => void called.push(eventId),
    });
    const body = encodeOrderEvents([
      eventOf('order.failed', 'a'),
      eventOf('order.created', 'b'),
      eventOf('order.paid', 'c'),
    ]);
    for (const _ of [1, 2]) {
      const rejected = await handle(body).catch((error: unknown) => error);
      expect(rejected).to.be.an('error').with.property('message', 'the mail is away');
    }
    expect(await handle(body)).to.deep.equal({ outcome: 'done' });
    expect(called).to.deep.equal(['a', 'b', 'c', 'a', 'a']);
  });

  it('renews a message while its hooks run, and no longer', async () => {
    const clock = new SteppedClock();
    const held: number[] = [];
    const ends: string[] = [];
    const delivery: Delivery = {
      messageId: 'm',
      body: '',
      attempt: 1,
      checkedBack: false,
      properties: new Map(),
      ack: async () => (ends.push('ack'), true),
      hold: async (ms) => (held.push(ms), true),
      retryAfter: async () => void ends.push('retry'),
    };
    const [first, second] = await renewedByTimer({ receive: async () => [delivery, delivery] }, 30_000, clock).receive(
      2,
    );
    const pass = async (ms: number): Promise<void> => {
      clock.advance(ms);
      await new Promise((resolve) => setImmediate(resolve));
    };
    await pass(9_999);
    expect(held).to.deep.equal([]);
    await pass(1);
    await pass(10_000);
    expect(held).to.deep.equal([30_000, 30_000, 30_000, 30_000]);
    await first?.ack();
    await second?.retryAfter(1_000);
    await pass(60_000);
    expect([held.length, ends]).to.deep.equal([4, ['ack', 'retry']]);
  });

  it('keeps events of a newer version for an app that knows them', async () => {
    const rejected = await callHooks({})('{"v":2,"events":[]}').catch((error: unknown) => error);
    expect(rejected)
      .to.be.an('error')
      .with.property('message')
      .that.matches(/^order events cannot be read/);
  });
});
