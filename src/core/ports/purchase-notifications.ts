import type { OrderNotification } from '../order-notifications.js';
import type { RequestRef } from '../purchase.js';

/** Called with the new state of the order, or with null if a notification may have been missed: then read the state. */
export type OnNotification = (notification: OrderNotification | null) => void;

/**
 * The receiving side. A notification may arrive twice, late, or not at all, so a listener must also poll now and then.
 */
export interface PurchaseNotifications {
  /**
   * Listens for one purchase. Calls `onNotification` with null once the subscription is established, and again after
   * each reconnect, so that the listener reads the state and misses nothing. Never throws.
   * @returns ends the subscription; safe to call twice
   */
  listen(purchase: RequestRef, onNotification: OnNotification): () => void;

  /**
   * Listens for all purchases of a sale. Works like `listen`, but never calls with null. Never throws.
   * @returns ends the subscription; safe to call twice
   */
  listenToSale(saleId: string, onNotification: (notification: OrderNotification) => void): () => void;
}

/** The sending side. A notification that has no listener is lost, which does no harm: the rows are the record. */
export interface PurchaseNotificationsSender {
  /**
   * Returns whether purchases of this sale may have a listener. The call is cheap.
   * @throws OperationalError redis
   */
  hasListeners(saleId: string): Promise<boolean>;

  /**
   * Notifies every listener.
   * @param notifications all of one sale, at most a few hundred
   * @throws OperationalError redis; the notifications may have been sent
   */
  send(saleId: string, notifications: readonly OrderNotification[]): Promise<void>;
}

/** Reads the state of orders, with the buyers that may wait for them. */
export interface OrderNotificationRows {
  /**
   * @param orderIds at most a few hundred
   * @returns the orders that exist, in their current state
   * @throws OperationalError mysql
   */
  notificationsOf(orderIds: readonly string[]): Promise<OrderNotification[]>;
}
