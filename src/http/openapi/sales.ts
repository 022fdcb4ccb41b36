import { BUCKETS_MAX } from '../../core/unit-transfer.js';
import { ADMIN, BEARER, body, COMMON, count, json, object, problems, readable, ref, SALE_ID } from './parts.js';

const adminMove = (verb: string): object => ({
  post: {
    operationId: `${verb}Sale`,
    summary: `${verb} a sale; safe to repeat`,
    security: BEARER,
    parameters: [SALE_ID],
    responses: {
      200: json('the sale as it now is', ref('Sale')),
      ...problems(...ADMIN, 'not_found', 'wrong_state', 'not_warmed', 'repairing'),
    },
  },
});

const adminSales = {
  post: {
    operationId: 'createSale',
    security: BEARER,
    requestBody: body(ref('NewSale'), true),
    responses: {
      201: json('the new sale, a draft', ref('Sale')),
      ...problems(...ADMIN, 'payload_too_large', 'unsupported_media_type'),
    },
  },
  get: {
    operationId: 'listSales',
    security: BEARER,
    responses: {
      200: json('sales, newest first', object({ sales: { type: 'array', items: ref('Sale') } })),
      ...problems(...ADMIN),
    },
  },
};

export const salePaths = {
  '/v1/sales/{saleId}': {
    get: {
      operationId: 'readSalePage',
      parameters: [SALE_ID],
      responses: {
        200: readable('the sale', 'SalePage'),
        204: { description: 'no page right now: there is too much to do' },
        ...problems(...COMMON, 'denied', 'rate_limited', 'not_found', 'loading'),
      },
    },
  },
  '/admin/v1/sales': adminSales,
  '/admin/v1/sales/{saleId}': {
    get: {
      operationId: 'readSale',
      security: BEARER,
      parameters: [SALE_ID],
      responses: { 200: json('the sale', ref('Sale')), ...problems(...ADMIN, 'not_found') },
    },
  },
  '/admin/v1/sales/{saleId}/reshard': {
    post: {
      operationId: 'reshardSale',
      summary: 'splits the stock of a sale into more buckets while it sells; buyers are shut out for a moment',
      security: BEARER,
      parameters: [SALE_ID],
      requestBody: body(object({ buckets: { type: 'integer', minimum: 2, maximum: BUCKETS_MAX } }), true),
      responses: {
        200: json(
          'how it is split now',
          object({ buckets: count, epoch: count, unitsLeft: count, shutMs: { type: 'number' } }),
        ),
        ...problems(...ADMIN, 'not_found', 'wrong_state', 'repairing', 'payload_too_large', 'unsupported_media_type'),
      },
    },
  },
  ...Object.fromEntries(
    ['warm', 'open', 'pause', 'resume', 'close'].map((verb) => [`/admin/v1/sales/{saleId}/${verb}`, adminMove(verb)]),
  ),
};
