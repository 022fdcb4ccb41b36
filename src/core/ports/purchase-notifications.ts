import type { OrderNotifications } from '../order-notifications.js';

/** Names one purchase. */
export interface PurchaseRef {
  readonly saleId: string;
  readonly userId: string;
  readonly requestId: string;
}

/** Told how the order stands; null: something may have been missed, so look. */
export type HearNotifications = (news: OrderNotifications | null) => void;

/** The listening side. News may come twice, late, or not at all: who listens also looks now and then. */
export interface PurchaseNotifications {
  /**
   * Listens for one purchase. `hear` is called with null when the way is open, and again whenever it was broken and is
   * open again; so a look after that misses nothing. Never throws.
   * @returns ends it; safe to call twice
   */
  listen(purchase: PurchaseRef, hear: HearNotifications): () => void;
}

/** The telling side. What nobody hears is gone: the rows are the record. */
export interface PurchaseNotificationsSender {
  /**
   * Whether anybody may listen for purchases of this sale; the answer is cheap.
   * @throws OperationalError redis
   */
  hasListeners(saleId: string): Promise<boolean>;

  /**
   * Tells everybody who listens.
   * @param news of one sale, at most some hundred
   * @throws OperationalError redis; it may have been told
   */
  send(saleId: string, news: readonly OrderNotifications[]): Promise<void>;
}

/** How orders stand, with the buyers who may wait for them. */
export interface NotificationsRows {
  /**
   * @param orderIds at most some hundred
   * @returns those that are there, as they stand now
   * @throws OperationalError mysql
   */
  notificationsOf(orderIds: readonly string[]): Promise<OrderNotifications[]>;
}
