import type { OrderNotifications } from '../order-notifications.js';

/** How orders stand, with the buyers who may wait for them. */
export interface NotificationsRows {
  /**
   * @param orderIds at most some hundred
   * @returns those that are there, as they stand now
   * @throws OperationalError mysql
   */
  notificationsOf(orderIds: readonly string[]): Promise<OrderNotifications[]>;
}
