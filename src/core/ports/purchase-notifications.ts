import type { OrderNotification } from '../order-notifications.js';
import type { RequestRef } from '../purchase.js';

/** Called with the new state of the order, or with null if a notification may have been missed: then read the state. */
export type OnNotification = (notification: OrderNotification | null) => void;

/** A notification may arrive twice, late, or not at all, so a listener must also poll now and then. */
export interface PurchaseNotifications {
  /**
   * Listens for one purchase. Calls with null once subscribed, and again after each reconnect, so the listener reads
   * the state and misses nothing. Never throws.
   * @returns ends the subscription; safe to call twice
   */
  listen(purchase: RequestRef, onNotification: OnNotification): () => void;

  /** Like `listen`, for all purchases of a sale, but never calls with null. */
  listenToSale(saleId: string, onNotification: (notification: OrderNotification) => void): () => void;
}

/** Notifications without a listener are lost: the rows are the record. Methods throw OperationalError redis. */
export interface PurchaseNotificationsSender {
  /** Returns whether a purchase of this sale may have a listener. Cheap. */
  hasListeners(saleId: string): Promise<boolean>;

  /** After an error, notifications may have been sent. @param notifications of one sale, at most a few hundred */
  send(saleId: string, notifications: readonly OrderNotification[]): Promise<void>;
}

export interface OrderNotificationRows {
  /** Returns the orders that exist, of at most a few hundred, in their current state. @throws OperationalError mysql */
  notificationsOf(orderIds: readonly string[]): Promise<OrderNotification[]>;
}
