import { z } from 'zod';
import { id, isoTime, orderId, saleParams, text } from '../../contract/fields.js';
import { orderedRefund, orderRefunds, voidStep, type OrderRefund as RefundBody } from '../../contract/orders.js';
import { foundOrder } from '../../contract/orders.js';
import { assertNever } from '../../core/errors.js';
import type { OrderRefund, RefundRefused } from '../../core/ports/order-refunds.js';
import { whyNoRefund } from '../../core/why-no-refund.js';
import { withoutUndefined } from '../../core/without-undefined.js';
import { json, problem, type Answer } from '../../http/answer.js';
import { jsonBody, operatorRoute, type RouteServices } from '../../http/route.js';
import { foundOrderBodies } from './order-pages.js';
import type { OrderServices } from './services.js';

const params = z.object({ orderId });
const reason = text.trim().min(1).max(500).meta({ description: 'for the audit log' });

export const cancelAnyOrder = operatorRoute({
  method: 'post',
  path: '/admin/v1/orders/{orderId}/cancel',
  operationId: 'cancelAnyOrder',
  summary: 'Cancels an unpaid order of any buyer. Its units are for sale again. Safe to repeat.',
  access: 'operator',
  params,
  body: jsonBody(z.strictObject({ reason })),
  answers: { 200: { description: 'the cancelled order', schema: foundOrder } },
  problems: ['order_not_found', 'wrong_state'],
  async handle(
    { params, body, userId: actor },
    { orderRefunds: orders, findOrder, orderSearch }: RouteServices & OrderServices,
  ) {
    const answer = await orders.cancel(params.orderId, body.reason, actor);
    if (answer === 'not_found') return problem('order_not_found');
    if (answer !== 'cancelled')
      return problem('wrong_state', { detail: `Cannot cancel an order that is ${answer.state}.` });
    const order = await findOrder(params.orderId);
    const [shown] = order === null ? [] : await foundOrderBodies([order], orderSearch);
    return shown === undefined ? problem('order_not_found') : json(200, 'cancelled', shown);
  },
});

export const refundOrder = operatorRoute({
  method: 'post',
  path: '/admin/v1/orders/{orderId}/refunds',
  operationId: 'refundOrder',
  summary:
    'Orders a refund of a paid order. The keeper makes it. Without an amount, all that is left is refunded, once. Send an Idempotency-Key with an amount: a repeat with it is the same refund.',
  access: 'admin',
  params,
  headers: [{ name: 'Idempotency-Key', required: false, description: 'the id of this refund', schema: id }],
  body: jsonBody(
    z.strictObject({
      amountCents: z.int().min(1).optional().meta({ description: 'a part; absent: all that is left' }),
      restock: z.boolean().default(false).meta({
        description: 'sell the units again, once nothing of the amount is left and while the sale is not closed',
      }),
      reason,
    }),
  ),
  answers: { 200: { description: 'the refund, which is due or done', schema: orderedRefund } },
  problems: ['order_not_found', 'wrong_state', 'request_conflict'],
  async handle(
    { params, body, req, userId: actor },
    { orderRefunds: orders, findOrder }: RouteServices & OrderServices,
  ) {
    const key = req.headers['idempotency-key'];
    if (key !== undefined && !id.safeParse(key).success) return problem('bad_request', { detail: KEY_SHAPE });
    if (key === undefined && body.amountCents !== undefined) return problem('bad_request', { detail: KEY_NEEDED });
    const { amountCents, restock, reason } = body;
    const wish = { restock, reason, ...withoutUndefined({ amountCents, key: key as string | undefined }) };
    const answer = await orders.order(params.orderId, wish, actor);
    switch (answer.outcome) {
      case 'refunding':
      case 'refunded':
        return json(200, answer.outcome, {
          outcome: answer.outcome,
          refund: answer.refund === null ? null : orderRefundBody(answer.refund),
        });
      case 'not_found':
        return problem('order_not_found');
      case 'key_conflict':
        return problem('request_conflict');
      case 'in_progress':
      case 'refund_failed':
      case 'wrong_state':
      case 'too_much':
      case 'sale_closed':
        return refused(answer, (await findOrder(params.orderId))?.currency ?? '');
      default:
        return assertNever(answer);
    }
  },
});

const KEY_SHAPE = 'The header Idempotency-Key must be 1 to 64 of the characters A-Z a-z 0-9 _ -';
const KEY_NEEDED = 'Send the header Idempotency-Key with an amount, so that a repeat is not a second refund.';

const refused = (answer: RefundRefused, currency: string): Answer<'wrong_state'> =>
  problem('wrong_state', { detail: whyNoRefund(answer, currency) });

export const listOrderRefunds = operatorRoute({
  method: 'get',
  path: '/admin/v1/orders/{orderId}/refunds',
  operationId: 'listOrderRefunds',
  summary: 'Lists the refunds of a paid order, oldest first.',
  access: 'viewer',
  params,
  answers: { 200: { description: 'all of them', schema: orderRefunds } },
  async handle({ params }, { orderRefunds: orders }: OrderServices) {
    return json(200, 'found', { refunds: (await orders.refundsOf(params.orderId)).map(orderRefundBody) });
  },
});

export const orderRefundBody = ({ createdAtMs, ...refund }: OrderRefund): RefundBody => ({
  ...refund,
  createdAt: isoTime(createdAtMs),
});

export const voidSale = operatorRoute({
  method: 'post',
  path: '/admin/v1/sales/{saleId}/void',
  operationId: 'voidSale',
  summary:
    'Cancels unpaid orders or orders refunds of paid orders of a paused or closed sale, up to 500 per call. Pass `next` as `after` until it is null. Safe to repeat.',
  access: 'admin',
  params: saleParams,
  body: jsonBody(
    z.strictObject({
      unpaid: z.boolean().default(false).meta({ description: 'cancel unpaid orders' }),
      refundAll: z.boolean().default(false).meta({ description: 'refund paid orders in whole' }),
      dryRun: z.boolean().default(false).meta({ description: 'only count; any state of the sale' }),
      reason,
      after: text.optional(),
    }),
  ),
  answers: { 200: { description: 'the orders of this call', schema: voidStep } },
  problems: ['not_found', 'wrong_state'],
  async handle({ params, body, userId: actor }, { orderRefunds: orders }: OrderServices) {
    const { after, ...wish } = body;
    if (!wish.unpaid && !wish.refundAll) return problem('bad_request', { detail: 'Set unpaid, refundAll or both.' });
    const answer = await orders.voidNext(params.saleId, after ?? null, wish, actor);
    switch (answer.outcome) {
      case 'done':
        return json(200, 'done', answer);
      case 'not_found':
        return problem('not_found');
      case 'sale_open':
        return problem('wrong_state', { detail: 'Pause or close the sale first, or new orders will keep arriving.' });
      case 'no_place':
        return problem('bad_request', { detail: 'after is not the `next` of an earlier call.' });
      default:
        return assertNever(answer);
    }
  },
});
