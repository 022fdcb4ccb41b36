import { isLive } from '../core/order.js';
import type { PurchaseOutcome } from '../core/outcome.js';
import type { Purchase } from '../core/purchase.js';
import type { OrderRepository } from '../core/ports/order-repository.js';

/**
 * The answer to a purchase in a retired sale. Redis has nothing of it any more, and every purchase that it let in has
 * its row: a repeated key is answered from that row, and every other purchase comes too late.
 * @throws OperationalError mysql
 */
export async function answerRetired(
  saleId: string,
  purchase: Purchase,
  orders: Pick<OrderRepository, 'findByPurchases'>,
): Promise<PurchaseOutcome> {
  const [row] = await orders.findByPurchases(saleId, [purchase]);
  if (row === undefined) return { outcome: 'closed' };
  const { orderId, quantity } = row;
  if (quantity !== purchase.quantity) return { outcome: 'request_conflict' };
  return { outcome: 'replayed', entry: { state: isLive(row.state) ? 'ordered' : 'released', orderId, quantity } };
}
