import { isOrderId } from '../../core/ids.js';
import type { Order } from '../../core/order.js';
import type { Body } from '../../admission/degrade/degraded-reads.js';
import type { HttpServices } from '../services.js';
import { answerRead } from './degraded-read.js';
import { buyerOf, type Router } from './router.js';
import { isoTime } from './sales.js';

/** Orders of the buyer who asks. An order of somebody else looks like none, so ids cannot be probed. */
export function mountOrders(router: Router, services: HttpServices): void {
  router.mount('order', '/v1/orders/{orderId}', {
    get: async (exchange) => {
      const { req, res, replies, param } = exchange;
      const who = await buyerOf(exchange, 'order', services);
      if (who === null) return;
      const orderId = param('orderId');
      if (!isOrderId(orderId)) {
        return replies.problem(req, res, 'bad_request', { detail: 'The order id must be a whole number.' });
      }
      const { userId } = who;
      const read = {
        ...{ endpoint: 'order' as const, key: `${userId}/${orderId}`, ids: { orderId }, who: () => userId },
        ...{ word: () => 'found', missing: () => 'order_not_found' as const },
        source: () => orderPage(orderId, userId, services),
      };
      await answerRead(exchange, read, services);
    },
  });
}

/** The order with what is or was owed back; null when this buyer has no such order. */
async function orderPage(orderId: string, userId: string, services: HttpServices): Promise<Body | null> {
  const order = await services.getOrder(orderId, userId);
  if (order === null) return null;
  const refunds = await services.refundsOf(orderId);
  const owed = refunds.map(({ amountCents, state, reason }) => ({ amountCents, state, reason }));
  return { ...orderBody(order), ...(owed.length > 0 ? { refunds: owed } : {}) };
}

export function orderBody(order: Order): object {
  const { orderId, saleId, requestId, quantity, amountCents, state, reason, createdAtMs, expiresAtMs, paidAtMs } =
    order;
  return {
    ...{ orderId, saleId, requestId, quantity, amountCents, state, reason },
    createdAt: isoTime(createdAtMs),
    expiresAt: expiresAtMs === null ? null : isoTime(expiresAtMs),
    paidAt: paidAtMs === null ? null : isoTime(paidAtMs),
  };
}
