import type { OrderNotification } from '../order-notifications.js';
import type { RequestRef } from '../purchase.js';

/** Called with the new state of the order; with null where a notification may have been missed, so read the state. */
export type OnNotification = (notification: OrderNotification | null) => void;

/** The receiver. A notification may come twice, late, or not at all: a listener also polls now and then. */
export interface PurchaseNotifications {
  /**
   * Listens for one purchase. `onNotification` is called with null when the subscription stands, and again whenever
   * it was lost and stands again; a read after that misses nothing. Never throws.
   * @returns ends it; safe to call twice
   */
  listen(purchase: RequestRef, onNotification: OnNotification): () => void;

  /**
   * Listens for all purchases of a sale, as `listen` does for one, but without the calls with null. Never throws.
   * @returns ends it; safe to call twice
   */
  listenToSale(saleId: string, onNotification: (notification: OrderNotification) => void): () => void;
}

/** The sender. A notification without a listener is lost: the rows are the record. */
export interface PurchaseNotificationsSender {
  /**
   * Whether anybody may listen for purchases of this sale; the answer is cheap.
   * @throws OperationalError redis
   */
  hasListeners(saleId: string): Promise<boolean>;

  /**
   * Notifies every listener.
   * @param notifications of one sale, at most some hundred
   * @throws OperationalError redis; it may have been sent
   */
  send(saleId: string, notifications: readonly OrderNotification[]): Promise<void>;
}

/** The state of orders, with the buyers who may wait for them. */
export interface OrderNotificationRows {
  /**
   * @param orderIds at most some hundred
   * @returns those that exist, in their present state
   * @throws OperationalError mysql
   */
  notificationsOf(orderIds: readonly string[]): Promise<OrderNotification[]>;
}
