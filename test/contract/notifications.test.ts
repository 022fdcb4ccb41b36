import { expect } from 'chai';
import type { OrderEvent, OrderEventType } from '../../src/core/order-event.js';
import { createStoredNotifications } from '../../src/mysql/notifications.js';
import { ownMysqlWorld, type MysqlWorld } from './repository-worlds.js';

describe('contract: StoredNotifications on MySQL', () => {
  let world: MysqlWorld;
  before(async () => {
    world = await ownMysqlWorld();
    const buyers = ['ann', 'ann', 'bob'].map(
      (userId, index) => `(${index + 1}, 7, '${userId}', 'k${index}', 'b', 1, 5, 0)`,
    );
    await world.pool.execute(
      `INSERT INTO orders (id, sale_id, user_id, request_id, batch_id, quantity, amount_cents, one_per_buyer)
        VALUES ${buyers.join(', ')}`,
    );
  });
  after(() => world.close());
  beforeEach(() => world.pool.execute('DELETE FROM notifications'));

  const stored = () => createStoredNotifications(world.pool);
  const event = (number: number, type: OrderEventType, ...orders: string[]): OrderEvent => ({
    eventId: `${number}-${type.slice(6)}`,
    type,
    saleId: '7',
    orders,
    atMs: 1_764_000_000_123 + number,
  });
  const list = async (userId: string, filter: object = {}) =>
    stored().list(userId, { onlyUnread: false, max: 10, ...filter });
  const types = async (userId: string, filter: object = {}) =>
    (await list(userId, filter)).map(({ orderId, type }) => `${orderId} ${type}`);

  it('stores each event once for every existing order, for the buyer of that order', async () => {
    const events = [event(1, 'order.created', '1', '2', '3', '404'), event(2, 'order.paid', '1')];
    for (let copies = 1; copies <= 2; copies++) await stored().store(events);
    await stored().store([event(3, 'order.paid', '3')]);
    expect(await types('bob')).to.deep.equal(['3 order.paid', '3 order.created']);
    expect(await types('ann')).to.have.members(['1 order.created', '2 order.created', '1 order.paid']);
    const [newest] = await list('bob');
    expect(newest).to.deep.include({ orderId: '3', saleId: '7', atMs: 1_764_000_000_126, isRead: false });
  });

  it('lists all or only unread notifications, page by page, newest first', async () => {
    for (const number of [1, 2, 3]) await stored().store([event(number, 'order.refunded', '1', '3')]);
    const [, second] = await list('ann', { max: 2 });
    expect(await list('ann', { before: second?.notificationId })).to.have.length(1);
    expect(await stored().markRead('ann', second?.notificationId ?? '')).to.equal(2);
    expect(await stored().markRead('ann', second?.notificationId ?? ''), 'again').to.equal(0);
    expect((await list('ann')).map(({ isRead }) => isRead)).to.deep.equal([false, true, true]);
    expect(await list('ann', { onlyUnread: true })).to.have.length(1);
    expect(await list('bob', { onlyUnread: true }), 'of others').to.have.length(3);
  });

  it('removes notifications older than 90 days', async () => {
    await stored().store([event(1, 'order.created', '1', '2')]);
    await world.pool.execute(
      'UPDATE notifications SET created_at = UTC_TIMESTAMP(3) - INTERVAL 91 DAY WHERE order_id = 1',
    );
    expect(await stored().removeOld(100)).to.equal(1);
    expect(await types('ann')).to.deep.equal(['2 order.created']);
  });
});
