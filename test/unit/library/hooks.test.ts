import { expect } from 'chai';
import { encodeOrderEvents, type OrderEvent, type OrderEventType } from '../../../src/core/order-event.js';
import { callHooks } from '../../../src/library/hooks.js';

const eventOf = (type: OrderEventType, eventId = `1-${type.slice(6)}`): OrderEvent => ({
  eventId,
  type,
  saleId: '7',
  orders: ['99'],
  atMs: 1_000,
});
const TYPES = ['order.created', 'order.failed', 'order.paid', 'order.cancelled', 'order.expired'] as const;

describe('hooks of an app', () => {
  it('each kind of event calls its own hook, with the event', async () => {
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

  it('what nobody asked for is done', async () => {
    const body = encodeOrderEvents(TYPES.map((type) => eventOf(type)));
    expect(await callHooks({})(body)).to.deep.equal({ outcome: 'done' });
  });

  it('one that rejects or throws has its message again, without the events that are done', async () => {
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

  it('events of a newer version are kept for an app that knows them', async () => {
    const rejected = await callHooks({})('{"v":2,"events":[]}').catch((error: unknown) => error);
    expect(rejected)
      .to.be.an('error')
      .with.property('message')
      .that.matches(/^order events cannot be read/);
  });
});
