import { Cluster, type Redis } from 'ioredis';
import { decodeOrderNotifications, encodeOrderNotifications } from '../core/order-notifications.js';
import { purchaseKey } from '../core/purchase.js';
import type { Log } from '../core/ports/log.js';
import type {
  HearNotifications,
  PurchaseNotifications,
  PurchaseNotificationsSender,
  PurchaseRef,
} from '../core/ports/purchase-notifications.js';
import { createListener } from './client.js';
import { guarded, type RedisConnection, type RedisOptions } from './connection.js';
import { notificationsChannel } from './keys.js';

/** The telling side, on the connection that the program has. A channel that nobody hears costs one short question. */
export function createPurchaseNotificationsSender({ redis }: RedisConnection): PurchaseNotificationsSender {
  // a cluster passes news on to all its servers, but each knows only who listens at itself
  const servers = (): readonly Redis[] => (redis instanceof Cluster ? redis.nodes('all') : [redis]);
  return {
    async hasListeners(saleId): Promise<boolean> {
      const ask = (server: Redis) => server.pubsub('NUMSUB', notificationsChannel(saleId));
      const replies = await guarded('ask who listens', () => Promise.all(servers().map(ask)));
      return replies.some((reply) => Number((reply as unknown[])[1]) > 0);
    },
    async send(saleId, news): Promise<void> {
      await guarded('tell how orders stand', () =>
        redis.publish(notificationsChannel(saleId), encodeOrderNotifications(news)),
      );
    },
  };
}

export interface PurchaseNotificationsOptions extends RedisOptions {
  /** A sale that nobody waits for any more stays subscribed for so long: the next buyer is often not far. */
  readonly lingerMs?: number;
}

export type OpenPurchaseNotifications = PurchaseNotifications & {
  /** Never rejects. */
  close(): Promise<void>;
};

const LINGER_MS = 10_000;
/** A connection that only listens would not notice that the other end is gone. */
const PING_EVERY_MS = 5000;

/**
 * The listening side: one connection of its own for the whole process, one subscription per sale. It connects in the
 * background and reconnects for ever; until then nobody hears anything, which all who listen must bear anyway.
 */
export function openPurchaseNotifications(
  { lingerMs = LINGER_MS, ...options }: PurchaseNotificationsOptions,
  log: Log,
): OpenPurchaseNotifications {
  const redis = createListener(options);
  const hall = new ListenerHall(redis, lingerMs, log);
  let lastError = '';
  redis.on('error', (error: Error) => {
    if (error.message !== lastError) log.warn({ err: error }, 'redis connection error, of the news');
    lastError = error.message;
  });
  redis.on('ready', () => {
    lastError = '';
    hall.subscribe(hall.saleIds);
  });
  redis.on('message', (channel: string, body: string) => hall.tell(channel, body));
  const pinging = setInterval(() => {
    if (redis.status === 'ready') redis.ping().catch(() => redis.disconnect(true));
  }, PING_EVERY_MS);
  pinging.unref();
  redis.connect().catch(() => undefined); // the error was logged, the next try follows by itself
  return {
    listen: (purchase, hear) => hall.listen(purchase, hear),
    async close(): Promise<void> {
      clearInterval(pinging);
      hall.close();
      redis.disconnect();
    },
  };
}

/** Who listens for one sale: purchase → those who wait for it. */
interface SaleListeners {
  readonly byPurchase: Map<string, Set<HearNotifications>>;
  /** Runs while nobody listens. */
  ending: NodeJS.Timeout | null;
}

class ListenerHall {
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

  listen({ saleId, ...purchase }: PurchaseRef, hear: HearNotifications): () => void {
    const channel = notificationsChannel(saleId);
    let sale = this.#sales.get(channel);
    if (sale === undefined) {
      sale = { saleId, byPurchase: new Map(), ending: null };
      this.#sales.set(channel, sale);
      if (this.#redis.status === 'ready') this.subscribe([saleId]);
    }
    if (sale.ending !== null) clearTimeout(sale.ending);
    sale.ending = null;
    const { byPurchase } = sale;
    const key = purchaseKey(purchase);
    const listeners = byPurchase.get(key) ?? new Set();
    byPurchase.set(key, listeners.add(hear));
    const own = sale;
    return () => {
      if (!listeners.delete(hear) || listeners.size > 0) return;
      byPurchase.delete(key);
      if (byPurchase.size === 0) own.ending = this.#endLater(channel);
    };
  }

  /** Every one of them hears of it when the way is open. A failure means a broken connection, and a new one asks again. */
  subscribe(saleIds: readonly string[]): void {
    if (saleIds.length === 0) return;
    const channels = saleIds.map(notificationsChannel);
    this.#redis.subscribe(...channels).then(
      () => {
        for (const channel of channels) this.#lookAll(channel);
      },
      (err: unknown) => {
        this.#log.debug({ err }, 'news were not subscribed');
        this.#redis.disconnect(true);
      },
    );
  }

  tell(channel: string, body: string): void {
    const sale = this.#sales.get(channel);
    if (sale === undefined) return;
    const decoded = decodeOrderNotifications(body);
    if (decoded.outcome !== 'decoded') {
      this.#log.warn({ saleId: sale.saleId, detail: decoded.detail }, 'news that cannot be read');
      return this.#lookAll(channel);
    }
    for (const news of decoded.news) {
      for (const hear of sale.byPurchase.get(purchaseKey(news)) ?? []) hear(news);
    }
  }

  close(): void {
    for (const { ending } of this.#sales.values()) if (ending !== null) clearTimeout(ending);
    this.#sales.clear();
  }

  #lookAll(channel: string): void {
    for (const listeners of this.#sales.get(channel)?.byPurchase.values() ?? []) {
      for (const hear of listeners) hear(null);
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
