import { QUANTITY_MAX } from '../../core/purchase.js';
import { STEP_RANKS } from '../../purchase/follow-purchase.js';
import {
  BEARER,
  body,
  id,
  json,
  object,
  parameter,
  problems,
  PURCHASE_TOKEN,
  QUEUE_PASS,
  readable,
  ref,
  SALE_BUYER,
  SALE_ID,
  SIGNATURE,
  text,
} from './parts.js';

const purchase = {
  operationId: 'buy',
  summary: 'Buy. Make the key once per purchase and keep it: every retry with it is safe.',
  security: BEARER,
  parameters: [
    ...[SALE_ID, parameter('header', 'Idempotency-Key', id), parameter('header', 'traceparent', text, false)],
    ...[...SIGNATURE, PURCHASE_TOKEN, QUEUE_PASS],
  ],
  requestBody: body(
    object({ quantity: { type: 'integer', minimum: 1, maximum: QUANTITY_MAX, default: 1 } }, []),
    false,
  ),
  responses: {
    200: json('asked before: the order is there, or how it ended', ref('Purchase')),
    202: json('the units are held for this buyer; see Location', ref('Purchase')),
    ...problems(
      ...([...SALE_BUYER, 'queue_pass_needed', 'purchase_token_needed', 'not_found'] as const),
      ...(['request_conflict', 'sold_out', 'limit_reached'] as const),
      ...(['not_open', 'closed', 'paused', 'loading', 'overloaded', 'degraded', 'outcome_unknown'] as const),
      ...(['payload_too_large', 'unsupported_media_type'] as const),
    ),
  },
};

const purchaseStatus = {
  operationId: 'readPurchase',
  summary: 'Where a purchase stands; waits up to `wait` seconds while it is pending.',
  security: BEARER,
  parameters: [
    SALE_ID,
    parameter('path', 'requestId', id),
    parameter('query', 'wait', { type: 'integer', minimum: 0, maximum: 30 }, false),
    ...SIGNATURE,
  ],
  responses: {
    200: readable('the purchase', 'Purchase'),
    ...problems(...SALE_BUYER, 'purchase_not_found', 'degraded', 'payload_too_large'),
  },
};

const purchaseEvents = {
  operationId: 'followPurchase',
  summary: 'The purchase as a stream of events, from where it stands to its end. Come again with Last-Event-ID.',
  security: BEARER,
  parameters: [
    SALE_ID,
    parameter('path', 'requestId', id),
    parameter('header', 'Last-Event-ID', { enum: Object.keys(STEP_RANKS) }, false),
    ...SIGNATURE,
  ],
  responses: {
    200: {
      description:
        'id and event: `pending`, `ordered`, then `paid`, `cancelled` or `expired`, or `failed`; data: the purchase as' +
        ' JSON. The stream ends behind the last one, or after a time, with `retry`.',
      content: { 'text/event-stream': { schema: text } },
    },
    204: { description: 'Last-Event-ID was the end: nothing more will come' },
    ...problems(...SALE_BUYER, 'purchase_not_found', 'overloaded', 'degraded', 'payload_too_large'),
  },
};

export const purchasePaths = {
  '/v1/sales/{saleId}/purchases': { post: purchase },
  '/v1/sales/{saleId}/purchases/{requestId}': { get: purchaseStatus },
  '/v1/sales/{saleId}/purchases/{requestId}/events': { get: purchaseEvents },
};
