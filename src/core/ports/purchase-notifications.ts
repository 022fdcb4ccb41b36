import type { OrderNotification } from '../order-notifications.js';
import type { RequestRef } from '../purchase.js';

/**
 * Called with the new state of the order. Called with null if a notification may have been missed: read the state then.
 */
export type OnNotification = (notification: OrderNotification | null) => void;

/** The receiver. A notification may arrive twice, late, or not at all, so a listener also polls now and then. */
export interface PurchaseNotifications {
  /**
   * Listens for one purchase. Calls `onNotification` with null when the subscription is established, and again after
   * each reconnect: a read after that misses nothing. Never throws.
   * @returns ends the subscription; safe to call twice
   */
  listen(purchase: RequestRef, onNotification: OnNotification): () => void;

  /**
   * Listens for all purchases of a sale. Works like `listen`, but without the calls with null. Never throws.
   * @returns ends the subscription; safe to call twice
   */
  listenToSale(saleId: string, onNotification: (notification: OrderNotification) => void): () => void;
}

/** The sender. A notification without a listener is lost: the rows are the record. */
export interface PurchaseNotificationsSender {
  /**
   * Says whether purchases of this sale may have a listener. The call is cheap.
   * @throws OperationalError redis
   */
  hasListeners(saleId: string): Promise<boolean>;

  /**
   * Notifies every listener.
   * @param notifications of one sale, at most some hundred
   * @throws OperationalError redis; the notifications may have been sent
   */
  send(saleId: string, notifications: readonly OrderNotification[]): Promise<void>;
}

/** The state of orders, with the buyers that may wait for them. */
export interface OrderNotificationRows {
  /**
   * @param orderIds at most some hundred
   * @returns the orders that exist, in their present state
   * @throws OperationalError mysql
   */
  notificationsOf(orderIds: readonly string[]): Promise<OrderNotification[]>;
}
