import { expect } from 'chai';
import type { OrderNotification } from '../../../src/core/order-notifications.js';
import { encodeOrderEvents, type OrderEvent } from '../../../src/core/order-event.js';
import { notifyBuyers } from '../../../src/orders/notify-buyers.js';
import { MemoryPurchaseNotifications } from '../../helpers/memory/memory-purchase-notifications.js';
import { KeeperWorld } from './keeper-world.js';

describe('keeper: notify-buyers', () => {
  let world: KeeperWorld;
  let notifications: MemoryPurchaseNotifications;
  let asked: (readonly string[])[];
  let stored: OrderEvent[];
  beforeEach(() => {
    world = new KeeperWorld();
    notifications = new MemoryPurchaseNotifications();
    asked = [];
    stored = [];
  });

  const event = (type: OrderEvent['type'], saleId: string, ...orders: string[]): OrderEvent => ({
    eventId: `1-${type.slice(6)}`,
    type,
    saleId,
    orders,
    atMs: 1,
  });
  const store = { store: async (events: readonly OrderEvent[]) => void stored.push(...events) };
  const notificationsOf = (orderId: string): OrderNotification => ({
    userId: `u${orderId}`,
    requestId: 'k1',
    orderId,
    state: 'paid',
    reason: null,
  });
  const handle = (...events: OrderEvent[]) => {
    const orders = {
      notificationsOf: async (orderIds: readonly string[]) => {
        asked.push(orderIds);
        return orderIds.filter((orderId) => orderId !== '404').map(notificationsOf);
      },
    };
    return notifyBuyers(orders, notifications, store, world.metrics)(encodeOrderEvents(events));
  };
  const waitFor = (saleId: string, userId: string): (OrderNotification | null)[] => {
    const received: (OrderNotification | null)[] = [];
    notifications.listen({ saleId, userId, requestId: 'k1' }, (sent) => void received.push(sent));
    return received;
  };

  it('sends the state of each row, not the state in the event', async () => {
    const received = waitFor('7', 'u1');
    const result = await handle(event('order.created', '7', '1', '2', '404'), event('order.paid', '7', '1'));
    expect(result).to.deep.equal({ outcome: 'done' });
    expect(notifications.sent).to.deep.equal([['7', [notificationsOf('1'), notificationsOf('2')]]]);
    expect(received.filter(Boolean)).to.deep.equal([notificationsOf('1')]);
    expect(world.counts.notified).to.equal(2);
  });

  it('stores an event without reading its rows if no buyer waits', async () => {
    waitFor('8', 'u1');
    expect((await handle(event('order.created', '7', '1'), event('order.paid', '8', '3'))).outcome).to.equal('done');
    expect(asked).to.deep.equal([['3']]);
    expect(notifications.sent.map(([saleId]) => saleId)).to.deep.equal(['8']);
    expect(stored, 'both are stored').to.have.length(2);
  });

  it('splits many orders into messages of limited size', async () => {
    waitFor('7', 'u1');
    await handle(event('order.created', '7', ...Array.from({ length: 1200 }, (_, index) => String(index + 1000))));
    expect(notifications.sent.map(([, sent]) => sent.length)).to.deep.equal([500, 500, 200]);
  });

  it('retries the message during a Redis outage [R8]', async () => {
    notifications.broken = true;
    const error: unknown = await handle(event('order.paid', '7', '1')).catch((thrown: unknown) => thrown);
    expect(error).to.include({ name: 'OperationalError', dependency: 'redis', retryable: true });
  });

  it('says what is wrong with a body that is not an event [M7]', async () => {
    const orders = { notificationsOf: () => expect.fail() };
    const outcome = await notifyBuyers(orders, notifications, store, world.metrics)('{"v":9}');
    expect(outcome.outcome).to.equal('unknown_version');
  });
});
