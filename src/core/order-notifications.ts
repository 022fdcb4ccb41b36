import { isId, isOrderId } from './ids.js';
import { openBody, undecodable as bad, type Undecodable } from './message-body.js';
import { ORDER_STATES, type FailureReason, type Order, type OrderState } from './order.js';

/** Version of the message body. */
const ORDER_NOTIFICATIONS_VERSION = 1;

/** How an order stands, for the buyer who waits for it. */
export type OrderNotification = Pick<Order, 'userId' | 'requestId' | 'orderId' | 'state' | 'reason'>;

export type DecodedOrderNotifications =
  { readonly outcome: 'decoded'; readonly notifications: readonly OrderNotification[] } | Undecodable;

/** @param notifications of one sale; what carries the text names the sale */
export function encodeOrderNotifications(notifications: readonly OrderNotification[]): string {
  const orders = notifications.map(({ userId, requestId, orderId, state, reason }) => {
    return reason === null ? [userId, requestId, orderId, state] : [userId, requestId, orderId, state, reason];
  });
  return JSON.stringify({ v: ORDER_NOTIFICATIONS_VERSION, orders });
}

/** Reads a message body and checks everything in it. A bad body is an answer, never a throw. */
export function decodeOrderNotifications(body: string): DecodedOrderNotifications {
  const opened = openBody(body, ORDER_NOTIFICATIONS_VERSION);
  if (opened.outcome !== 'opened') return opened;
  const { orders } = opened.fields;
  if (!Array.isArray(orders)) return bad('orders is not a list');
  const notifications: OrderNotification[] = [];
  for (const [index, item] of orders.entries()) {
    const [userId, requestId, orderId, state, reason = null] = Array.isArray(item) ? (item as unknown[]) : [];
    if (!isId(userId) || !isId(requestId) || !isOrderId(orderId) || !isState(state) || !isReason(reason)) {
      return bad(`order ${index} is not [user, request, order, state, reason]`);
    }
    notifications.push({ userId, requestId, orderId, state, reason });
  }
  return { outcome: 'decoded', notifications };
}

const isState = (value: unknown): value is OrderState => ORDER_STATES.some((state) => state === value);
/** Any word: a reason is only shown, and a newer keeper may know one more. */
const isReason = (value: unknown): value is FailureReason | null => value === null || isId(value);
