import { Cluster, type Redis } from 'ioredis';
import {
  decodeOrderNotifications,
  encodeOrderNotifications,
  type OrderNotification,
} from '../core/order-notifications.js';
import { purchaseKey } from '../core/purchase.js';
import type { Log } from '../core/ports/log.js';
import type {
  OnNotification,
  PurchaseNotifications,
  PurchaseNotificationsSender,
  PurchaseRef,
} from '../core/ports/purchase-notifications.js';
import { createSubscriberClient } from './client.js';
import { asOperationalError, type RedisConnection, type RedisOptions } from './connection.js';
import { notificationsChannel } from './keys.js';

/** The sender, on the connection that the program has. A channel without subscribers costs one short query. */
export function createPurchaseNotificationsSender({ redis }: RedisConnection): PurchaseNotificationsSender {
  // a cluster passes a message on to all its servers, but each knows only its own subscribers
  const servers = (): readonly Redis[] => (redis instanceof Cluster ? redis.nodes('all') : [redis]);
  return {
    async hasListeners(saleId): Promise<boolean> {
      const countAt = (server: Redis) => server.pubsub('NUMSUB', notificationsChannel(saleId));
      const replies = await asOperationalError('count subscribers', () => Promise.all(servers().map(countAt)));
      return replies.some((reply) => Number((reply as unknown[])[1]) > 0);
    },
    async send(saleId, notifications): Promise<void> {
      await asOperationalError('publish notifications', () =>
        redis.publish(notificationsChannel(saleId), encodeOrderNotifications(notifications)),
      );
    },
  };
}

export interface PurchaseNotificationsOptions extends RedisOptions {
  /** How long a sale without listeners stays subscribed, in ms: the next buyer often comes soon. */
  readonly lingerMs?: number;
}

export type OpenPurchaseNotifications = PurchaseNotifications & {
  /** Never rejects. */
  close(): Promise<void>;
};

const LINGER_MS = 10_000;
/** A connection that only receives would not notice that the other end is gone. */
const PING_EVERY_MS = 5000;

/**
 * The receiver: one connection of its own for the whole process, one subscription per sale. It connects in the background
 * and reconnects for ever. Notifications of the time without a connection are lost, so listeners also poll.
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
  redis.connect().catch(() => undefined); // the error was logged, the next try follows by itself
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

/** The listeners of one sale, by purchase. */
interface SaleListeners {
  /** Those for every purchase. */
  readonly ofAll: Set<(notification: OrderNotification) => void>;
  readonly byPurchase: Map<string, Set<OnNotification>>;
  /** The timer that ends the subscription; it runs while there is no listener. */
  ending: NodeJS.Timeout | null;
}

/** Which sales are subscribed, and who listens for their purchases. */
class Subscriptions {
  readonly #redis: Redis;
  readonly #lingerMs: number;
  readonly #log: Log;
  /** By channel. */
  readonly #sales = new Map<string, SaleListeners & { readonly saleId: string }>();

  constructor(redis: Redis, lingerMs: number, log: Log) {
    this.#redis = redis;
    this.#lingerMs = lingerMs;
    this.#log = log;
  }

  get saleIds(): string[] {
    return [...this.#sales.values()].map(({ saleId }) => saleId);
  }

  listen({ saleId, ...purchase }: PurchaseRef, onNotification: OnNotification): () => void {
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

  /** The listeners of a sale that is subscribed from now on, until `endIfUnused` finds none. */
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

  /** Subscribes, then calls every listener with null. A failure means a broken connection: the next one subscribes again. */
  subscribe(saleIds: readonly string[]): void {
    if (saleIds.length === 0) return;
    const channels = saleIds.map(notificationsChannel);
    this.#redis.subscribe(...channels).then(
      () => {
        for (const channel of channels) this.#notifyPossibleGap(channel);
      },
      (err: unknown) => {
        this.#log.debug({ err }, 'notifications were not subscribed');
        this.#redis.disconnect(true);
      },
    );
  }

  deliver(channel: string, body: string): void {
    const sale = this.#sales.get(channel);
    if (sale === undefined) return;
    const decoded = decodeOrderNotifications(body);
    if (decoded.outcome !== 'decoded') {
      this.#log.warn({ saleId: sale.saleId, detail: decoded.detail }, 'a notification cannot be decoded');
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

  /** Notifications may have been missed: every listener of this sale must read the state itself. */
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
