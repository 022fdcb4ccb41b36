import { expect } from 'chai';
import type { OrderNotification } from '../../src/core/order-notifications.js';
import { silentLog } from '../helpers/silent-log.js';
import type {
  PurchaseNotifications,
  PurchaseNotificationsSender,
} from '../../src/core/ports/purchase-notifications.js';
import { connectRedis } from '../../src/redis/connection.js';
import { notificationsChannel } from '../../src/redis/keys.js';
import {
  createPurchaseNotificationsSender,
  openPurchaseNotifications,
} from '../../src/redis/purchase-notifications.js';
import { MemoryPurchaseNotifications } from '../helpers/memory/memory-purchase-notifications.js';
import { startRedisCluster, WORLD_TIMEOUT_MS } from '../helpers/redis-cluster.js';
import { freshSaleId } from '../helpers/sales.js';
import { stackEnv } from '../helpers/stack-env.js';
import { TcpProxy } from '../chaos/harness/tcp-proxy.js';
import { until } from '../chaos/harness/wait.js';

interface NotificationsWorld {
  readonly news: PurchaseNotifications;
  readonly sender: PurchaseNotificationsSender;
  /** The way is broken and comes back by itself. */
  breakWay(): Promise<void>;
  close(): Promise<void>;
}

async function memoryWorld(): Promise<NotificationsWorld> {
  const news = new MemoryPurchaseNotifications();
  return { news, sender: news, breakWay: async () => news.reconnect(), close: async () => undefined };
}

const LINGER_MS = 50;

async function redisWorld(): Promise<NotificationsWorld> {
  const { REDIS_URL: url } = stackEnv();
  const times = { replyTimeoutMs: 5000, connectTimeoutMs: 3000 };
  const proxy = await TcpProxy.open(new URL(url).host);
  const through = new URL(url);
  through.host = proxy.address;
  const connection = await connectRedis({ url, ...times }, silentLog);
  const news = openPurchaseNotifications({ url: through.href, ...times, lingerMs: LINGER_MS }, silentLog);
  return {
    news,
    sender: createPurchaseNotificationsSender(connection),
    breakWay: async () => proxy.reset(),
    async close() {
      await news.close();
      await connection.close();
      await proxy.close();
    },
  };
}

async function clusterWorld(): Promise<NotificationsWorld> {
  const cluster = await startRedisCluster();
  const options = { url: cluster.url, replyTimeoutMs: 5000, connectTimeoutMs: 3000 };
  const connection = await connectRedis(options, silentLog);
  const news = openPurchaseNotifications({ ...options, lingerMs: LINGER_MS }, silentLog);
  return {
    news,
    sender: createPurchaseNotificationsSender(connection),
    breakWay: async () => {
      await Promise.all(cluster.admin.map((server) => server.call('CLIENT', 'KILL', 'TYPE', 'pubsub')));
    },
    async close() {
      await news.close();
      await connection.close();
      await cluster.stop();
    },
  };
}

const notificationsOf = (requestId: string, parts: Partial<OrderNotification> = {}): OrderNotification => ({
  userId: 'ann',
  requestId,
  orderId: '101',
  state: 'pending_payment',
  reason: null,
  ...parts,
});

for (const [name, createWorld] of [
  ['memory', memoryWorld],
  ['redis', redisWorld],
  ['a Redis cluster', clusterWorld],
] as const) {
  describe(`contract PurchaseNotifications on ${name}`, function () {
    this.timeout(30_000);
    let world: NotificationsWorld;
    let saleId: string;
    before(async function () {
      this.timeout(WORLD_TIMEOUT_MS);
      world = await createWorld();
    });
    beforeEach(() => {
      saleId = freshSaleId();
    });
    after(() => world?.close());

    /** Listens, and waits until the way is open. */
    async function listen(
      requestId: string,
      sale = saleId,
    ): Promise<{ heard: (OrderNotification | null)[]; end: () => void }> {
      const heard: (OrderNotification | null)[] = [];
      const purchase = { saleId: sale, userId: 'ann', requestId };
      const end = world.news.listen(purchase, (told) => void heard.push(told));
      await until('the way is open', () => world.sender.hasListeners(sale));
      return { heard, end };
    }
    const told = (heard: readonly (OrderNotification | null)[]): OrderNotification[] =>
      heard.filter((one) => one !== null);

    it('a listener is notified of its own purchase, as it was sent, and of no other', async () => {
      const [first, second] = [await listen('k1'), await listen('k2')];
      const elsewhere = await listen('k1', freshSaleId());
      const failed = notificationsOf('k2', { orderId: '102', state: 'failed', reason: 'limit_reached' });
      await world.sender.send(saleId, [
        notificationsOf('k1'),
        notificationsOf('k3'),
        failed,
        notificationsOf('k1', { userId: 'bob' }),
      ]);
      await until('both have heard', () => told(first.heard).length > 0 && told(second.heard).length > 0);
      expect(told(first.heard)).to.deep.equal([notificationsOf('k1')]);
      expect(told(second.heard)).to.deep.equal([failed]);
      expect(told(elsewhere.heard)).to.deep.equal([]);
      for (const { end } of [first, second, elsewhere]) end();
    });

    it('the first listener of a sale must read once the subscription stands: what came before was missed', async () => {
      const { heard, end } = await listen('k1');
      await until('he is told', () => heard.includes(null));
      end();
    });

    it('one purchase may have several listeners; one that has ended is not notified', async () => {
      const [first, second] = [await listen('k1'), await listen('k1')];
      first.end();
      first.end();
      await world.sender.send(saleId, [notificationsOf('k1')]);
      await until('the second has heard', () => told(second.heard).length === 1);
      expect(told(first.heard)).to.deep.equal([]);
      second.end();
    });

    it('says whether anybody listens, for the sale as a whole', async () => {
      expect(await world.sender.hasListeners(saleId)).to.equal(false);
      const [first, second] = [await listen('k1'), await listen('k2')];
      first.end();
      await new Promise((resolve) => setTimeout(resolve, 2 * LINGER_MS));
      expect(await world.sender.hasListeners(saleId)).to.equal(true);
      second.end();
      await until('nobody listens any more', async () => !(await world.sender.hasListeners(saleId)));
      const again = await listen('k3');
      await world.sender.send(saleId, [notificationsOf('k3')]);
      await until('a later one hears', () => told(again.heard).length === 1);
      again.end();
    });

    it('telling where nobody listens is no error', async () => {
      await world.sender.send(saleId, [notificationsOf('k1')]);
    });

    it('many at once, in one message', async () => {
      const listeners = await Promise.all(Array.from({ length: 300 }, (_, index) => listen(`k${index}`)));
      await world.sender.send(
        saleId,
        listeners.map((_, index) => notificationsOf(`k${index}`)),
      );
      await until('all have heard', () => listeners.every(({ heard }) => told(heard).length === 1));
      for (const { end } of listeners) end();
    });

    it('after a lost connection every listener must read again, and is notified of what follows [R8]', async () => {
      const { heard, end } = await listen('k1');
      await until('the way is open', () => name === 'memory' || heard.includes(null));
      heard.length = 0;
      await world.breakWay();
      await until('he is told to look', () => heard.includes(null));
      await world.sender.send(saleId, [notificationsOf('k1')]);
      await until('he hears', () => told(heard).length === 1);
      end();
    });
  });
}

describe('notifications in Redis', () => {
  it('a message that cannot be read makes every listener read the state [M7]', async () => {
    const { REDIS_URL: url } = stackEnv();
    const times = { replyTimeoutMs: 5000, connectTimeoutMs: 3000 };
    const connection = await connectRedis({ url, ...times }, silentLog);
    const news = openPurchaseNotifications({ url, ...times }, silentLog);
    const saleId = freshSaleId();
    const heard: (OrderNotification | null)[] = [];
    news.listen({ saleId, userId: 'ann', requestId: 'k1' }, (told) => void heard.push(told));
    await until('the way is open', () => heard.length === 1);
    await connection.redis.publish(notificationsChannel(saleId), '{"v":9}');
    await until('he looks', () => heard.length === 2);
    expect(heard).to.deep.equal([null, null]);
    await news.close();
    await connection.close();
  });
});
