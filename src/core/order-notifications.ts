import { isId, isOrderId, isUserId } from './ids.js';
import { openBody, undecodable as bad, type Undecodable } from './message-body.js';
import { ORDER_STATES, type FailureReason, type Order, type OrderState } from './order.js';
import { purchaseKey, splitPurchaseKey } from './purchase.js';

/** Version of the message body. A reader that does not know the version reads the stores instead. */
const ORDER_NOTIFICATIONS_VERSION = 2;

/** The current state of an order, for the buyer who waits for it. */
export type OrderNotification = Pick<Order, 'userId' | 'requestId' | 'orderId' | 'state' | 'reason'>;

/**
 * Encodes one message: `{"v":2,"orders":[[userId/requestId, orderId, state, reason], ...]}`. Nearly all orders are new,
 * so `pending_payment` and a missing reason are left out. `lua/mark-recorded-4.lua` reads this form and publishes it
 * unchanged.
 * @param notifications of one sale; the channel names the sale
 */
export function encodeOrderNotifications(
  notifications: readonly (Omit<OrderNotification, 'reason'> & { readonly reason?: FailureReason | null })[],
): string {
  const orders = notifications.map((order) => {
    const key = purchaseKey(order);
    if (order.reason) return [key, order.orderId, order.state, order.reason];
    return order.state === 'pending_payment' ? [key, order.orderId] : [key, order.orderId, order.state];
  });
  return JSON.stringify({ v: ORDER_NOTIFICATIONS_VERSION, orders });
}

/**
 * Returns a reason for a bad body; never throws.
 * @param isWanted skips other orders unchecked, by key: an api hears of every order of a sale but waits for few
 */
export function decodeOrderNotifications(
  body: string,
  isWanted: (key: string) => boolean = () => true,
): { readonly outcome: 'decoded'; readonly notifications: readonly OrderNotification[] } | Undecodable {
  const opened = openBody(body, ORDER_NOTIFICATIONS_VERSION);
  if (opened.outcome !== 'opened') return opened;
  const { orders } = opened.fields;
  if (!Array.isArray(orders)) return bad('orders is not a list');
  const notifications: OrderNotification[] = [];
  for (const [index, item] of orders.entries()) {
    const [key, orderId, state = 'pending_payment', reason = null] = Array.isArray(item) ? (item as unknown[]) : [];
    if (typeof key === 'string' && !isWanted(key)) continue;
    const { userId, requestId } = splitPurchaseKey(typeof key === 'string' ? key : '');
    const isKey = isUserId(userId) && isId(requestId);
    if (!isKey || !isOrderId(orderId) || !isState(state) || !isReason(reason)) {
      return bad(`order ${index} is not [user/request, order, state, reason]`);
    }
    notifications.push({ userId, requestId, orderId, state, reason });
  }
  return { outcome: 'decoded', notifications };
}

const isState = (value: unknown): value is OrderState => ORDER_STATES.some((state) => state === value);
/** Accepts any word, because a reason is only shown, and a newer keeper may know further reasons. */
const isReason = (value: unknown): value is FailureReason | null => value === null || isId(value);
