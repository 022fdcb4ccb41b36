import { isOrderId } from '../core/ids.js';
import type { Order } from '../core/order.js';
import type { OrderRepository } from '../core/ports/order-repository.js';

/**
 * Reads one order of a buyer; null when there is none. The order of somebody else does not exist for him either, so
 * nobody can probe for ids.
 * @throws OperationalError mysql
 */
export async function getOrder(
  orderId: string,
  userId: string,
  repository: Pick<OrderRepository, 'findOrder'>,
): Promise<Order | null> {
  if (!isOrderId(orderId)) return null;
  const order = await repository.findOrder(orderId);
  return order?.userId === userId ? order : null;
}
