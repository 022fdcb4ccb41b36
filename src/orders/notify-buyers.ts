import { decodeOrderEvents } from '../core/order-event.js';
import { inSteps, type Job } from '../core/job.js';
import type { StoredNotifications } from '../core/ports/notifications.js';
import type { OrderNotificationRows, PurchaseNotificationsSender } from '../core/ports/purchase-notifications.js';
import type { MessageResult } from './consume-messages.js';
import type { OrderJobMetrics } from './metrics.js';

/** Maximum number of orders in one message, which then has some tens of kB for every listening api. */
const ORDERS_PER_MESSAGE = 500;

/**
 * Sends waiting buyers the state of their orders, through their api. If no buyer waits for a sale, only that check
 * costs. The state comes from the rows, so an event may come late or twice. Then stores the events, for buyers who look
 * later.
 */
export function notifyBuyers(
  orders: OrderNotificationRows,
  sender: PurchaseNotificationsSender,
  stored: Pick<StoredNotifications, 'store'>,
  metrics: OrderJobMetrics,
) {
  return async (body: string): Promise<MessageResult> => {
    const decoded = decodeOrderEvents(body);
    if (decoded.outcome !== 'decoded') return decoded;
    const bySale = new Map<string, Set<string>>();
    for (const { saleId, orders: orderIds } of decoded.events) {
      const known = bySale.get(saleId) ?? new Set();
      bySale.set(saleId, known);
      for (const orderId of orderIds) known.add(orderId);
    }
    for (const [saleId, known] of bySale) {
      if (!(await sender.hasListeners(saleId))) continue;
      const orderIds = [...known];
      for (let from = 0; from < orderIds.length; from += ORDERS_PER_MESSAGE) {
        const notifications = await orders.notificationsOf(orderIds.slice(from, from + ORDERS_PER_MESSAGE));
        if (notifications.length > 0) await sender.send(saleId, notifications);
        metrics.notificationsSent(notifications.length);
      }
    }
    await stored.store(decoded.events);
    return { outcome: 'done' };
  };
}

/** @param stopping ends a run early */
export const tidyNotifications = (stored: Pick<StoredNotifications, 'removeOld'>, stopping: AbortSignal): Job => ({
  name: 'tidy-notifications',
  runOnce: () => inSteps((max) => stored.removeOld(max), stopping),
});
