import { assertNever } from '../../core/errors.js';
import { isId, isOrderId } from '../../core/ids.js';
import type { Order } from '../../core/order.js';
import { refusesChange } from '../../admission/degrade/degrade.js';
import type { HttpServices } from '../services.js';
import { orderBody } from './orders.js';
import { buyerOf, type Exchange, type Router } from './router.js';

/** What a buyer can do with an order of his own: pay it or give it up. Both are safe to repeat. */
export function mountOrderMoves(router: Router, services: HttpServices): void {
  router.mount('order', '/v1/orders/{orderId}/pay', {
    post: async (exchange) => {
      const asked = await askedIn(exchange, services);
      if (asked !== null) await pay(exchange, asked, services);
    },
  });
  router.mount('order', '/v1/orders/{orderId}/cancel', {
    post: async (exchange) => {
      const asked = await askedIn(exchange, services);
      if (asked !== null) await cancel(exchange, asked, services);
    },
  });
}

interface Asked {
  readonly orderId: string;
  readonly userId: string;
}

/** Who asks about which order; answers itself and returns null when the request is not fit to be asked. */
async function askedIn(exchange: Exchange, services: HttpServices): Promise<Asked | null> {
  const who = await buyerOf(exchange, 'order', services);
  if (who === null) return null;
  const orderId = exchange.param('orderId');
  const refuse = (code: 'bad_request' | 'degraded', detail?: string): null => {
    exchange.replies.problem(exchange.req, exchange.res, code, detail === undefined ? {} : { detail });
    return null;
  };
  if (!isOrderId(orderId)) return refuse('bad_request', 'The order id must be a whole number.');
  const { degrade } = services;
  if (degrade.isOn && refusesChange(degrade.rulingOf('order', who.userId))) return refuse('degraded');
  return { orderId, userId: who.userId };
}

async function pay({ req, res, replies }: Exchange, asked: Asked, services: HttpServices): Promise<void> {
  const key = req.headers['idempotency-key'] ?? null;
  if (key !== null && !isId(key)) {
    const detail = 'The header Idempotency-Key must be 1 to 64 of the characters A-Z a-z 0-9 _ -';
    return replies.problem(req, res, 'bad_request', { detail });
  }
  const parts = { requestId: key };
  const answer = await services.payOrder({ ...asked, key });
  switch (answer.outcome) {
    case 'paid':
      return replies.json(req, res, 200, answer.outcome, orderBody(answer.order));
    case 'wrong_state':
      return replies.problem(req, res, answer.outcome, { ...parts, detail: stateDetail('pay', answer.order) });
    case 'not_found':
      return replies.problem(req, res, 'order_not_found', parts);
    case 'declined':
      return replies.problem(req, res, 'payment_declined', parts);
    case 'refund_due':
    case 'outcome_unknown':
    case 'payment_not_configured':
      return replies.problem(req, res, answer.outcome, parts);
    default:
      return assertNever(answer);
  }
}

async function cancel({ req, res, replies }: Exchange, asked: Asked, services: HttpServices): Promise<void> {
  const answer = await services.cancelOrder(asked.orderId, asked.userId);
  switch (answer.outcome) {
    case 'cancelled':
      return replies.json(req, res, 200, answer.outcome, orderBody(answer.order));
    case 'wrong_state':
      return replies.problem(req, res, answer.outcome, { detail: stateDetail('cancel', answer.order) });
    case 'not_found':
      return replies.problem(req, res, 'order_not_found');
    default:
      return assertNever(answer);
  }
}

const stateDetail = (verb: string, { state }: Order): string => `Cannot ${verb} an order that is ${state}.`;
