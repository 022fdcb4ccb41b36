import type { OrderEvent, OrderEventType } from '../order-event.js';

/** A change of a buyer's order. */
interface StoredNotification {
  readonly notificationId: string;
  readonly type: OrderEventType;
  readonly orderId: string;
  readonly saleId: string;
  /** Unix ms on the clock of MySQL. */
  readonly atMs: number;
  readonly isRead: boolean;
}

interface NotificationFilter {
  readonly onlyUnread: boolean;
  /** The page starts after this notification. If absent, it starts at the newest. */
  readonly before?: string | undefined;
  readonly max: number;
}

/** Notifications that buyers can read later. Methods throw OperationalError mysql. */
export interface StoredNotifications {
  /** Stores each event once for each of its orders. */
  store(events: readonly OrderEvent[]): Promise<void>;

  /** Lists the notifications of a buyer, newest first. */
  list(userId: string, filter: NotificationFilter): Promise<StoredNotification[]>;

  /** Marks all up to this one as read. Returns how many were unread. */
  markRead(userId: string, upTo: string): Promise<number>;

  /** Removes at most `max` old notifications. Returns their number. */
  removeOld(max: number): Promise<number>;
}
