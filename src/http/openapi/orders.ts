import { BEARER, body, BUYER, COMMON, id, json, object, parameter, problems, readable, ref, text } from './parts.js';

const ORDER_ID = parameter('path', 'orderId', { type: 'string', pattern: '^[1-9][0-9]{0,18}$' });

const payOrder = {
  operationId: 'payOrder',
  summary: 'Pay an order. One Idempotency-Key is one charge; without it all tries are one. Safe to repeat.',
  security: BEARER,
  parameters: [ORDER_ID, parameter('header', 'Idempotency-Key', id, false)],
  responses: {
    200: json('the order, paid now or before', ref('Order')),
    ...problems(...BUYER, 'order_not_found', 'wrong_state', 'refund_due', 'payment_declined'),
    ...problems('payment_not_configured', 'unavailable', 'outcome_unknown', 'degraded'),
  },
};

const cancelOrder = {
  operationId: 'cancelOrder',
  summary: 'Give up an order that is not paid. Safe to repeat.',
  security: BEARER,
  parameters: [ORDER_ID],
  responses: {
    200: json('the order, cancelled now or before', ref('Order')),
    ...problems(...BUYER, 'order_not_found', 'wrong_state', 'degraded'),
  },
};

const paymentWebhook = {
  operationId: 'tellPayment',
  summary: 'A payment provider tells what it took. Safe to repeat: a payment counts once, by its id.',
  parameters: [
    parameter('header', 'Payment-Signature', {
      ...{ type: 'string', pattern: '^t=[0-9]{1,12},v1=[0-9a-f]{64}$' },
      description: 't: unix seconds, at most 300 from now; v1: hex of HMAC-SHA-256 over "<t>.<body>"',
    }),
  ],
  requestBody: body(ref('PaymentEvent'), true),
  responses: {
    200: json(
      'taken: the order is paid, or the money is owed back; `ignored` for other types',
      object({ outcome: { enum: ['paid', 'refund_due', 'ignored'] }, orderId: text, paymentId: text }, ['outcome']),
    ),
    ...problems(...COMMON, 'bad_signature', 'order_not_found', 'payment_conflict', 'payload_too_large'),
    ...problems('unsupported_media_type', 'payment_not_configured'),
  },
};

export const orderPaths = {
  '/v1/orders/{orderId}': {
    get: {
      operationId: 'readOrder',
      security: BEARER,
      parameters: [ORDER_ID],
      responses: {
        200: readable('the order, with what is or was owed back', 'OrderWithRefunds'),
        ...problems(...BUYER, 'order_not_found', 'degraded'),
      },
    },
  },
  '/v1/orders/{orderId}/pay': { post: payOrder },
  '/v1/orders/{orderId}/cancel': { post: cancelOrder },
  '/v1/payments/webhook': { post: paymentWebhook },
};
