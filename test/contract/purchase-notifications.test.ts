import { expect } from 'chai';
import type { OrderNotification } from '../../src/core/order-notifications.js';
import { silentLog } from '../helpers/silent-log.js';
import type {
  PurchaseNotifications,
  PurchaseNotificationsSender,
} from '../../src/core/ports/purchase-notifications.js';
import { connectRedis, pingAnyServer } from '../../src/redis/connection.js';
import { notificationsChannel } from '../../src/redis/keys.js';
import {
  createPurchaseNotificationsSender,
  openPurchaseNotifications,
} from '../../src/redis/purchase-notifications.js';
import { MemoryPurchaseNotifications } from '../helpers/memory/memory-purchase-notifications.js';
import { startRedisCluster } from '../helpers/redis-cluster.js';
import { freshSaleId } from '../helpers/sales.js';
import { stackEnv } from '../helpers/stack-env.js';
import { TcpProxy } from '../chaos/harness/tcp-proxy.js';
import { grantedMsOf, pause, until } from '../chaos/harness/wait.js';
import { onEachWorld } from './on-each-world.js';

interface NotificationsWorld {
  readonly notifications: PurchaseNotifications;
  readonly sender: PurchaseNotificationsSender;
  /** Breaks the connection of the listeners, which then reconnect. */
  breakConnection(): Promise<void>;
  close(): Promise<void>;
}

async function memoryWorld(): Promise<NotificationsWorld> {
  const notifications = new MemoryPurchaseNotifications();
  return {
    notifications,
    sender: notifications,
    breakConnection: async () => notifications.reconnect(),
    close: async () => undefined,
  };
}

const LINGER_MS = 50;

async function redisWorld(): Promise<NotificationsWorld> {
  const { REDIS_URL: url } = stackEnv();
  const times = { replyTimeoutMs: 5000, connectTimeoutMs: 3000 };
  const proxy = await TcpProxy.open(new URL(url).host);
  const through = new URL(url);
  through.host = proxy.address;
  const connection = await connectRedis({ url, ...times }, silentLog);
  const notifications = openPurchaseNotifications({ url: through.href, ...times, lingerMs: LINGER_MS }, silentLog);
  return {
    notifications,
    sender: createPurchaseNotificationsSender(connection),
    breakConnection: async () => proxy.reset(),
    async close() {
      await notifications.close();
      await connection.close();
      await proxy.close();
    },
  };
}

async function clusterWorld(): Promise<NotificationsWorld> {
  const cluster = await startRedisCluster();
  const options = { url: cluster.url, replyTimeoutMs: 5000, connectTimeoutMs: 3000 };
  const connection = await connectRedis(options, silentLog);
  const notifications = openPurchaseNotifications({ ...options, lingerMs: LINGER_MS }, silentLog);
  return {
    notifications,
    sender: createPurchaseNotificationsSender(connection),
    breakConnection: async () => {
      await Promise.all(cluster.admin.map((server) => server.call('CLIENT', 'KILL', 'TYPE', 'pubsub')));
    },
    async close() {
      await notifications.close();
      await connection.close();
      await cluster.stop();
    },
  };
}

const notificationOf = (requestId: string, parts: Partial<OrderNotification> = {}): OrderNotification => ({
  userId: 'ann',
  requestId,
  orderId: '101',
  state: 'pending_payment',
  reason: null,
  ...parts,
});

const WORLDS = [
  ['memory', memoryWorld],
  ['redis', redisWorld],
  ['a Redis cluster', clusterWorld],
] as const;

onEachWorld<NotificationsWorld>('contract PurchaseNotifications', WORLDS, (world, name) => {
  let saleId: string;
  beforeEach(() => {
    saleId = freshSaleId();
  });

  /** Adds a listener and waits until the subscription is ready. */
  async function listen(
    requestId: string,
    sale = saleId,
  ): Promise<{ received: (OrderNotification | null)[]; end: () => void }> {
    const received: (OrderNotification | null)[] = [];
    const purchase = { saleId: sale, userId: 'ann', requestId };
    const end = world.notifications.listen(purchase, (notification) => void received.push(notification));
    await until('the subscription is ready', () => world.sender.hasListeners(sale));
    return { received, end };
  }
  const notificationsIn = (received: readonly (OrderNotification | null)[]): OrderNotification[] =>
    received.filter((one) => one !== null);

  it('notifies a listener only of its own purchase, unchanged', async () => {
    const [first, second] = [await listen('k1'), await listen('k2')];
    const elsewhere = await listen('k1', freshSaleId());
    const failed = notificationOf('k2', { orderId: '102', state: 'failed', reason: 'limit_reached' });
    await world.sender.send(saleId, [
      notificationOf('k1'),
      notificationOf('k3'),
      failed,
      notificationOf('k1', { userId: 'bob' }),
    ]);
    await until(
      'both were notified',
      () => notificationsIn(first.received).length > 0 && notificationsIn(second.received).length > 0,
    );
    expect(notificationsIn(first.received)).to.deep.equal([notificationOf('k1')]);
    expect(notificationsIn(second.received)).to.deep.equal([failed]);
    expect(notificationsIn(elsewhere.received)).to.deep.equal([]);
    for (const { end } of [first, second, elsewhere]) end();
  });

  it('tells the first listener to read the sale once the subscription is ready', async () => {
    const { received, end } = await listen('k1');
    await until('the listener must read', () => received.includes(null));
    end();
  });

  it('notifies several listeners of a purchase, but no listener that has ended', async () => {
    const [first, second] = [await listen('k1'), await listen('k1')];
    first.end();
    first.end();
    await world.sender.send(saleId, [notificationOf('k1')]);
    await until('the second was notified', () => notificationsIn(second.received).length === 1);
    expect(notificationsIn(first.received)).to.deep.equal([]);
    second.end();
  });

  it('notifies the listener of a sale only of purchases in that sale, until the listener ends', async () => {
    const received: OrderNotification[] = [];
    const end = world.notifications.listenToSale(saleId, (one) => void received.push(one));
    await until('the subscription is ready', () => world.sender.hasListeners(saleId));
    const elsewhere = await listen('k1', freshSaleId());
    const all = [notificationOf('k1'), notificationOf('k2', { userId: 'bob', orderId: '102' })];
    await world.sender.send(saleId, all);
    await until('it was notified', () => received.length > 0);
    expect(received).to.deep.equal(all);
    const other = await listen('k1');
    end();
    end();
    await world.sender.send(saleId, [notificationOf('k1')]);
    await until('the other was notified', () => notificationsIn(other.received).length > 0);
    expect([received.length, notificationsIn(elsewhere.received)]).to.deep.equal([2, []]);
    other.end();
    elsewhere.end();
    await until('nobody listens', async () => !(await world.sender.hasListeners(saleId)));
  });

  it('reports whether a sale has listeners', async () => {
    expect(await world.sender.hasListeners(saleId)).to.equal(false);
    const [first, second] = [await listen('k1'), await listen('k2')];
    first.end();
    await pause(2 * LINGER_MS);
    expect(await world.sender.hasListeners(saleId)).to.equal(true);
    second.end();
    await until('there are no listeners any more', async () => !(await world.sender.hasListeners(saleId)));
    const again = await listen('k3');
    await world.sender.send(saleId, [notificationOf('k3')]);
    await until('a later listener is notified', () => notificationsIn(again.received).length === 1);
    again.end();
  });

  it('sends without an error when there are no listeners', async () => {
    await world.sender.send(saleId, [notificationOf('k1')]);
  });

  it('sends many notifications in one message', async () => {
    const listeners = await Promise.all(Array.from({ length: 300 }, (_, index) => listen(`k${index}`)));
    await world.sender.send(
      saleId,
      listeners.map((_, index) => notificationOf(`k${index}`)),
    );
    await until('all were notified', () => listeners.every(({ received }) => notificationsIn(received).length === 1));
    for (const { end } of listeners) end();
  });

  it('tells every listener to read after a lost connection, then continues to notify [R8]', async () => {
    const { received, end } = await listen('k1');
    await until('the subscription is ready', () => name === 'memory' || received.includes(null));
    received.length = 0;
    await world.breakConnection();
    await until('the listener must read again', () => received.includes(null));
    await world.sender.send(saleId, [notificationOf('k1')]);
    await until('the listener is notified', () => notificationsIn(received).length === 1);
    end();
  });
});

describe('notifications in a cluster in which one server hangs', () => {
  const REPLY_MS = 1500;

  it('are delivered without waiting for that server, whose listeners move to another server [R8]', async () => {
    const cluster = await startRedisCluster();
    const options = { url: cluster.url, replyTimeoutMs: REPLY_MS, connectTimeoutMs: 3000 };
    const connection = await connectRedis(options, silentLog);
    const notifications = openPurchaseNotifications(options, silentLog);
    const sender = createPurchaseNotificationsSender(connection);
    const saleId = freshSaleId();
    const received: (OrderNotification | null)[] = [];
    try {
      const purchase = { saleId, userId: 'ann', requestId: 'k1' };
      notifications.listen(purchase, (notification) => void received.push(notification));
      await until('the subscription is ready', () => sender.hasListeners(saleId));
      const where = await Promise.all(
        cluster.admin.map(async (server) => Number((await server.pubsub('NUMSUB', notificationsChannel(saleId)))[1])),
      );
      const hung = where.indexOf(0);
      cluster.servers[hung]?.signal('SIGSTOP');
      await sender.hasListeners(saleId);
      received.length = 0;
      for (let sent = 1; sent <= 20; sent++) {
        const tookMs = await grantedMsOf(async () => {
          await pingAnyServer(connection);
          expect(await sender.hasListeners(saleId)).to.equal(true);
          expect(await sender.hasListeners(freshSaleId())).to.equal(false);
          await sender.send(saleId, [notificationOf('k1', { orderId: String(sent) })]);
        });
        expect(tookMs, 'it is not waited for again').to.be.lessThan(REPLY_MS / 2);
      }
      await until('all of them arrived', () => received.length === 20);
      cluster.servers[hung]?.signal('SIGCONT');

      const own = where.indexOf(1);
      cluster.servers[own]?.signal('SIGSTOP');
      const arrives = async (): Promise<boolean> => {
        await sender.send(saleId, [notificationOf('k1', { orderId: '999' })]).catch(() => undefined);
        return received.some((one) => one?.orderId === '999');
      };
      await until('the listener is elsewhere', arrives);
      // The hanging server is asked again once it has sent a response.
      await until('the sender finds it there', () => sender.hasListeners(saleId));
      cluster.servers[own]?.signal('SIGCONT');
    } finally {
      for (const server of cluster.servers) server.signal('SIGCONT');
      await notifications.close();
      await connection.close();
      await cluster.stop();
    }
  });
});

describe('notifications in Redis', () => {
  it('tell every listener to read the state if a message cannot be read [M7]', async () => {
    const { REDIS_URL: url } = stackEnv();
    const times = { replyTimeoutMs: 5000, connectTimeoutMs: 3000 };
    const connection = await connectRedis({ url, ...times }, silentLog);
    const notifications = openPurchaseNotifications({ url, ...times }, silentLog);
    const saleId = freshSaleId();
    const received: (OrderNotification | null)[] = [];
    notifications.listen(
      { saleId, userId: 'ann', requestId: 'k1' },
      (notification) => void received.push(notification),
    );
    await until('the subscription is ready', () => received.length === 1);
    await connection.redis.publish(notificationsChannel(saleId), '{"v":9}');
    await until('the listener must read', () => received.length === 2);
    expect(received).to.deep.equal([null, null]);
    await notifications.close();
    await connection.close();
  });
});
