import { isOrderId } from '../../domain/ids.js';
import type { Order } from '../../domain/order.js';
import type { HttpServices } from '../services.js';
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
      const order = await services.getOrder(orderId, who.userId);
      if (order === null) return replies.problem(req, res, 'order_not_found');
      const refunds = await services.refundsOf(orderId);
      const owed = refunds.map(({ amountCents, state, reason }) => ({ amountCents, state, reason }));
      replies.json(req, res, 200, 'found', { ...orderBody(order), ...(owed.length > 0 ? { refunds: owed } : {}) });
    },
  });
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
