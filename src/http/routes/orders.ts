import { z } from 'zod';
import { id, isoTime, isoTimeOrNull, limit, orderId, queryText } from '../../contract/fields.js';
import {
  actionNeeded,
  orderPageSchema,
  orderSchema,
  ordersOfBuyer,
  type Order as OrderBody,
} from '../../contract/orders.js';
import { couponCode } from '../../contract/coupons.js';
import { COUPON_REFUSALS } from '../../core/coupon.js';
import { assertNever } from '../../core/errors.js';
import { isId } from '../../core/ids.js';
import type { Order, ShownOrder } from '../../core/order.js';
import { refusesChange } from '../../admission/degrade/degrade.js';
import type { Body } from '../../admission/degrade/degraded-reads.js';
import { withoutUndefined } from '../../core/without-undefined.js';
import { json, problem } from '../answer.js';
import { defineRoute, optionalJsonBody, type Call, type RouteServices } from '../route.js';
import { answerRead, readable } from './degraded-read.js';

/** Orders of the calling buyer. Orders of others look missing, so that clients cannot probe ids. */

/** Start of a page of orders. Operators use it too. */
export const after = queryText(140).optional();
export const NO_PLACE = 'after is not a position in this list. Pass `next` of the previous page.';

export const listMyOrders = defineRoute({
  method: 'get',
  path: '/v1/me/orders',
  label: 'order',
  operationId: 'listMyOrders',
  summary: 'Lists the orders of the buyer, newest first. Pass `next`, an order id, as `after` to get the next page.',
  access: 'buyer',
  query: z.strictObject({ after, limit }),
  answers: {
    200: { description: 'a page', schema: ordersOfBuyer },
  },
  async handle({ userId, query }, { orderSearch }) {
    const page = await orderSearch.page({ userId }, query.after ?? null, query.limit);
    if (page === null) return problem('bad_request', { detail: NO_PLACE });
    return json(200, 'found', { orders: page.orders.map(orderBody), next: page.next });
  },
});

const params = z.object({ orderId });

export const readOrder = defineRoute({
  method: 'get',
  path: '/v1/orders/{orderId}',
  label: 'order',
  operationId: 'readOrder',
  summary:
    'Returns an order of the buyer: refundedCents is the sum of its refunds, refunds lists payments that came too late.',
  access: 'buyer',
  params,
  answers: { 200: readable('the order', orderPageSchema) },
  problems: ['order_not_found'],
  async handle({ userId, requestId, params: { orderId } }, services) {
    return answerRead(
      {
        endpoint: 'order',
        key: `${userId}/${orderId}`,
        ids: { orderId },
        requestId,
        caller: () => userId,
        word: () => 'found',
        missing: () => 'order_not_found' as const,
        source: () => orderPage(orderId, userId, services),
      },
      services,
    );
  },
});

/** Returns the order, with refunds of payments that came too late. Null when this buyer has no such order. */
async function orderPage(orderId: string, userId: string, services: RouteServices): Promise<Body | null> {
  const order = await services.getOrder(orderId, userId);
  if (order === null) return null;
  const refunds = await services.refundsOf(orderId);
  const owed = refunds.map(({ amountCents, state, reason }) => ({ amountCents, state, reason }));
  return { ...orderBody(order), ...(owed.length > 0 ? { refunds: owed } : {}) };
}

const KEY_SHAPE = 'The header Idempotency-Key must be 1 to 64 of the characters A-Z a-z 0-9 _ -';

/** Most providers need no payment method. */
const payment = z.object({
  paymentMethod: id.optional().meta({
    description: 'id of the card from the library of the payment provider (Stripe: `pm_…`); never the card number',
  }),
  coupon: couponCode.optional().meta({ description: 'a coupon of the buyer; send it with each repeat of this charge' }),
});

export const payOrder = defineRoute({
  method: 'post',
  path: '/v1/orders/{orderId}/pay',
  label: 'order',
  operationId: 'payOrder',
  summary:
    'Pays an order. Each Idempotency-Key is one charge. Without a key, all attempts are one charge. Only one key is charged at a time. Safe to repeat.',
  access: 'buyer',
  params,
  headers: [{ name: 'Idempotency-Key', required: false, description: 'the id of this charge', schema: id }],
  body: optionalJsonBody(payment, {}),
  answers: {
    200: { description: 'the paid order', schema: orderSchema },
    202: {
      description:
        'the bank asks the buyer to confirm: pass `clientSecret` to the library of the payment provider, then retry with the same key',
      schema: actionNeeded,
    },
  },
  problems: [
    'order_not_found',
    'wrong_state',
    'refund_due',
    'payment_declined',
    'decline_limit_reached',
    'payment_in_progress',
    'payment_method_needed',
    'payment_not_configured',
    'outcome_unknown',
    'coupon_refused',
  ],
  async handle(call, services) {
    const { userId, requestId, params, req, body } = call;
    if (req.headers['idempotency-key'] !== undefined && !isId(req.headers['idempotency-key'])) {
      return problem('bad_request', { detail: KEY_SHAPE });
    }
    if (isDegraded(call, services)) return problem('degraded', { requestId });
    const charge = { key: requestId, method: body.paymentMethod ?? null, ...withoutUndefined({ coupon: body.coupon }) };
    const answer = await services.payOrder({ orderId: params.orderId, userId, ...charge });
    switch (answer.outcome) {
      case 'paid':
        return json(200, answer.outcome, orderBody(answer.order));
      case 'action_needed': {
        const { outcome, clientSecret } = answer;
        return json(202, outcome, { outcome, orderId: answer.order.orderId, clientSecret });
      }
      case 'wrong_state':
        return problem(answer.outcome, { requestId, detail: stateDetail('pay', answer.order) });
      case 'not_found':
        return problem('order_not_found', { requestId });
      case 'coupon_refused':
        return problem(answer.outcome, { requestId, detail: COUPON_REFUSALS[answer.why] });
      case 'declined':
        return problem('payment_declined', { requestId });
      case 'refund_due':
      case 'outcome_unknown':
      case 'decline_limit_reached':
      case 'payment_in_progress':
      case 'payment_method_needed':
      case 'payment_not_configured':
        return problem(answer.outcome, { requestId });
      default:
        return assertNever(answer);
    }
  },
});

export const cancelOrder = defineRoute({
  method: 'post',
  path: '/v1/orders/{orderId}/cancel',
  label: 'order',
  operationId: 'cancelOrder',
  summary: 'Cancels an unpaid order. Safe to repeat.',
  access: 'buyer',
  params,
  answers: { 200: { description: 'the cancelled order', schema: orderSchema } },
  problems: ['order_not_found', 'wrong_state', 'cancel_limit_reached'],
  async handle(call, services) {
    const { userId, requestId, params } = call;
    if (isDegraded(call, services)) return problem('degraded', { requestId });
    const answer = await services.cancelOrder(params.orderId, userId);
    switch (answer.outcome) {
      case 'cancelled':
        return json(200, answer.outcome, orderBody(answer.order));
      case 'wrong_state':
        return problem(answer.outcome, { detail: stateDetail('cancel', answer.order) });
      case 'cancel_limit_reached':
        return problem(answer.outcome, { requestId });
      case 'not_found':
        return problem('order_not_found');
      default:
        return assertNever(answer);
    }
  },
});

/** A change is either made or refused; there is no degraded form. */
const isDegraded = ({ userId }: Call, { degrade }: RouteServices): boolean =>
  degrade.isOn && refusesChange(degrade.rulingOf('order', userId));

/** Formats an order for buyers. */
export function orderBody(order: ShownOrder): OrderBody {
  const { orderId, saleId, requestId, quantity, amountCents, currency, state, reason, metadata } = order;
  return {
    orderId,
    saleId,
    requestId,
    quantity,
    amountCents,
    currency,
    state,
    reason,
    createdAt: isoTime(order.createdAtMs),
    expiresAt: isoTimeOrNull(order.expiresAtMs),
    paidAt: isoTimeOrNull(order.paidAtMs),
    refundedCents: order.refundedCents,
    metadata,
  };
}

const stateDetail = (verb: string, { state }: Order): string => `Cannot ${verb} an order that is ${state}.`;
