import { isOrderId } from '../domain/ids.js';
import type { Order } from '../domain/order.js';
import type { OrderBook } from '../ports/order-book.js';

export type GetOrderOutcome = { readonly outcome: 'found'; readonly order: Order } | { readonly outcome: 'not_found' };

/**
 * Reads one order of a buyer. The order of somebody else does not exist for him, so nobody can probe for ids.
 * @throws OperationalError mysql
 */
export async function getOrder(
  book: Pick<OrderBook, 'findOrder'>,
  { orderId, userId }: { readonly orderId: string; readonly userId: string },
): Promise<GetOrderOutcome> {
  if (!isOrderId(orderId)) return { outcome: 'not_found' };
  const order = await book.findOrder(orderId);
  return order !== null && order.userId === userId ? { outcome: 'found', order } : { outcome: 'not_found' };
}
