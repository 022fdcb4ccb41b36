import { Cluster, type Redis } from 'ioredis';
import {
  decodeOrderNotifications,
  encodeOrderNotifications,
  type OrderNotification,
} from '../core/order-notifications.js';
import { purchaseKey, type RequestRef } from '../core/purchase.js';
import type { Log } from '../core/ports/log.js';
import type {
  OnNotification,
  PurchaseNotifications,
  PurchaseNotificationsSender,
} from '../core/ports/purchase-notifications.js';
import { createSubscriberClient, type RedisClient } from './client.js';
import { asOperationalError, nameOf, type RedisConnection, type RedisOptions } from './connection.js';
import { notificationsChannel } from './keys.js';

/** Uses the program's existing connection. A channel without subscribers costs a short query. */
export function createPurchaseNotificationsSender({ redis }: RedisConnection): PurchaseNotificationsSender {
  const servers = new Servers(redis);
  return {
    async hasListeners(saleId): Promise<boolean> {
      const channel = notificationsChannel(saleId);
      return asOperationalError('count subscribers', async () => {
        const counts = await servers.askAll(async (server) => Number((await server.pubsub('NUMSUB', channel))[1]));
        return counts.some((count) => count > 0);
      });
    },
    async send(saleId, notifications): Promise<void> {
      const body = encodeOrderNotifications(notifications);
      await asOperationalError('publish notifications', () =>
        servers.askOne((server) => server.publish(notificationsChannel(saleId), body)),
      );
    },
  };
}

/**
 * The server, or the servers of a cluster. A cluster server passes messages on to all others but knows only its own
 * subscribers. A silent server delivers nothing either, so the answers of the others are enough. No call waits for a
 * server that was silent last time, or it would delay the notifications of all sales.
 */
class Servers {
  readonly #redis: RedisClient;
  /** Names of the servers that did not answer the last call. */
  readonly #silent = new Set<string>();

  constructor(redis: RedisClient) {
    this.#redis = redis;
  }

  /**
   * @returns the answers of the servers that answer
   * @throws what the driver throws, if none does
   */
  async askAll<T>(question: (server: Redis) => Promise<T>): Promise<T[]> {
    const servers = this.#all();
    if (servers.length === 0) await this.#redis.ping(); // reports why there is no server
    const waitFor = servers.some((server) => !this.#isSilent(server))
      ? servers.map((server) => !this.#isSilent(server))
      : servers.map(() => true);
    const asked = servers.map((server) => this.#ask(server, question));
    const settled = await Promise.allSettled(asked.filter((_, index) => waitFor[index]));
    const answers = settled.filter((one) => one.status === 'fulfilled').map(({ value }) => value);
    const [first] = settled;
    if (answers.length === 0 && first?.status === 'rejected') throw first.reason;
    return answers;
  }

  /** Asks any server. @throws what the driver throws */
  async askOne<T>(question: (server: Redis) => Promise<T>): Promise<T> {
    const servers = this.#all();
    const server = servers.find((one) => one.status === 'ready' && !this.#isSilent(one)) ?? servers[0];
    if (server === undefined) return question(this.#redis as Redis);
    return this.#ask(server, question);
  }

  #all(): readonly Redis[] {
    return this.#redis instanceof Cluster ? this.#redis.nodes('all') : [this.#redis];
  }

  #isSilent(server: Redis): boolean {
    return this.#silent.has(nameOf(server));
  }

  /** Calls a server, and handles a rejection that no caller awaits. */
  #ask<T>(server: Redis, question: (server: Redis) => Promise<T>): Promise<T> {
    const asked = question(server);
    asked.then(
      () => this.#silent.delete(nameOf(server)),
      () => this.#silent.add(nameOf(server)),
    );
    return asked;
  }
}

export interface PurchaseNotificationsOptions extends RedisOptions {
  /** How long a sale without listeners stays subscribed, ms. The next buyer often comes soon. */
  readonly lingerMs?: number;
}

export type OpenPurchaseNotifications = PurchaseNotifications & {
  /** Never rejects. */
  close(): Promise<void>;
};

const LINGER_MS = 10_000;
/** Without these pings, a connection that only receives would not notice that the other end is gone. */
const PING_EVERY_MS = 5000;

/**
 * Opens a separate connection with one subscription per sale. It connects in the background, and reconnects forever.
 * Without connection, notifications are lost, so listeners also poll.
 */
export function openPurchaseNotifications(
  { lingerMs = LINGER_MS, ...options }: PurchaseNotificationsOptions,
  log: Log,
): OpenPurchaseNotifications {
  const redis = createSubscriberClient(options);
  const subscriptions = new Subscriptions(redis, lingerMs, log);
  let lastError = '';
  redis.on('error', (error: Error) => {
    if (error.message !== lastError) log.warn({ err: error }, 'redis connection error of the notifications');
    lastError = error.message;
  });
  redis.on('ready', () => {
    lastError = '';
    subscriptions.subscribe(subscriptions.saleIds);
  });
  redis.on('message', (channel: string, body: string) => subscriptions.deliver(channel, body));
  const pinging = setInterval(() => {
    if (redis.status === 'ready') redis.ping().catch(() => redis.disconnect(true));
  }, PING_EVERY_MS);
  pinging.unref();
  redis.connect().catch(() => undefined); // the error was logged, and the driver tries again
  return {
    listen: (purchase, onNotification) => subscriptions.listen(purchase, onNotification),
    listenToSale: (saleId, onNotification) => subscriptions.listenToSale(saleId, onNotification),
    async close(): Promise<void> {
      clearInterval(pinging);
      subscriptions.close();
      redis.disconnect();
    },
  };
}

interface SaleListeners {
  readonly ofAll: Set<(notification: OrderNotification) => void>;
  readonly byPurchase: Map<string, Set<OnNotification>>;
  /** Timer that ends the subscription. It runs while there is no listener. */
  ending: NodeJS.Timeout | null;
}

class Subscriptions {
  readonly #redis: Redis;
  readonly #lingerMs: number;
  readonly #log: Log;
  /** Sales by channel. */
  readonly #sales = new Map<string, SaleListeners & { readonly saleId: string }>();

  constructor(redis: Redis, lingerMs: number, log: Log) {
    this.#redis = redis;
    this.#lingerMs = lingerMs;
    this.#log = log;
  }

  get saleIds(): string[] {
    return [...this.#sales.values()].map(({ saleId }) => saleId);
  }

  listen({ saleId, ...purchase }: RequestRef, onNotification: OnNotification): () => void {
    const { byPurchase, endIfUnused } = this.#subscribed(saleId);
    const key = purchaseKey(purchase);
    const listeners = byPurchase.get(key) ?? new Set();
    byPurchase.set(key, listeners.add(onNotification));
    return () => {
      if (!listeners.delete(onNotification) || listeners.size > 0) return;
      byPurchase.delete(key);
      endIfUnused();
    };
  }

  listenToSale(saleId: string, onNotification: (notification: OrderNotification) => void): () => void {
    const { ofAll, endIfUnused } = this.#subscribed(saleId);
    const own = (notification: OrderNotification): void => onNotification(notification);
    ofAll.add(own);
    return () => {
      if (ofAll.delete(own)) endIfUnused();
    };
  }

  /** Returns the listeners of a sale and subscribes to it, until `endIfUnused` finds that there is no listener. */
  #subscribed(saleId: string): SaleListeners & { readonly endIfUnused: () => void } {
    const channel = notificationsChannel(saleId);
    let sale = this.#sales.get(channel);
    if (sale === undefined) {
      sale = { saleId, ofAll: new Set(), byPurchase: new Map(), ending: null };
      this.#sales.set(channel, sale);
      if (this.#redis.status === 'ready') this.subscribe([saleId]);
    }
    if (sale.ending !== null) clearTimeout(sale.ending);
    sale.ending = null;
    const own = sale;
    const endIfUnused = (): void => {
      if (own.byPurchase.size === 0 && own.ofAll.size === 0) own.ending = this.#endLater(channel);
    };
    return { ...own, endIfUnused };
  }

  /** Subscribes, then calls every listener with null. A failure means a broken connection; the next one subscribes. */
  subscribe(saleIds: readonly string[]): void {
    if (saleIds.length === 0) return;
    const channels = saleIds.map(notificationsChannel);
    this.#redis.subscribe(...channels).then(
      () => {
        for (const channel of channels) this.#notifyPossibleGap(channel);
      },
      (err: unknown) => {
        this.#log.debug({ err }, 'could not subscribe to notifications');
        this.#redis.disconnect(true);
      },
    );
  }

  deliver(channel: string, body: string): void {
    const sale = this.#sales.get(channel);
    if (sale === undefined) return;
    const decoded = decodeOrderNotifications(body, (key) => sale.ofAll.size > 0 || sale.byPurchase.has(key));
    if (decoded.outcome !== 'decoded') {
      this.#log.warn({ saleId: sale.saleId, detail: decoded.detail }, 'could not decode a notification');
      return this.#notifyPossibleGap(channel);
    }
    for (const notification of decoded.notifications) {
      for (const notify of sale.ofAll) notify(notification);
      for (const notify of sale.byPurchase.get(purchaseKey(notification)) ?? []) notify(notification);
    }
  }

  close(): void {
    for (const { ending } of this.#sales.values()) if (ending !== null) clearTimeout(ending);
    this.#sales.clear();
  }

  /** Tells the listeners of a sale to read the state, because notifications may have been missed. */
  #notifyPossibleGap(channel: string): void {
    for (const listeners of this.#sales.get(channel)?.byPurchase.values() ?? []) {
      for (const notify of listeners) notify(null);
    }
  }

  #endLater(channel: string): NodeJS.Timeout {
    const timer = setTimeout(() => {
      this.#sales.delete(channel);
      if (this.#redis.status === 'ready') this.#redis.unsubscribe(channel).catch(() => this.#redis.disconnect(true));
    }, this.#lingerMs);
    return timer.unref();
  }
}
