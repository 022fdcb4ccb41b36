import { CLASSES } from '../../admission/queue/queue-rules.js';
import {
  BEARER,
  json,
  object,
  orNull,
  parameter,
  problems,
  SALE_BUYER,
  SALE_ID,
  SIGNATURE,
  text,
  time,
} from './parts.js';

const whole = { type: 'integer', minimum: 0 } as const;

const place = {
  oneOf: [
    object({
      ...{ status: { const: 'waiting' }, ticket: text, priority: { enum: CLASSES } },
      ...{ position: orNull(whole), estimateMs: orNull(whole), pollAfterMs: whole },
    }),
    object({ status: { const: 'admitted' }, pass: text, passEndsAt: time }),
    object({ status: { const: 'no_queue' } }),
  ],
};
const SALE = [...SALE_BUYER, 'payload_too_large', 'not_found', 'loading', 'closed'] as const;
const ENDS = [...SALE, 'sold_out', 'overloaded'] as const;

const joinQueue = {
  operationId: 'joinQueue',
  summary: 'Join the waiting room of a sale. Safe to repeat: who waits keeps his place.',
  security: BEARER,
  parameters: [SALE_ID, ...SIGNATURE],
  responses: {
    200: json('let in, or there is no queue', place),
    202: json('a place; see Location', place),
    ...problems(...ENDS),
  },
};

const readTicket = {
  operationId: 'readTicket',
  summary: 'How a place stands. Each answer brings a new ticket; the old one ends.',
  security: BEARER,
  parameters: [SALE_ID, parameter('path', 'ticket', text), ...SIGNATURE],
  responses: { 200: json('the place', place), ...problems(...ENDS, 'ticket_not_found') },
};

const fetchToken = {
  operationId: 'fetchPurchaseToken',
  summary: 'The one purchase token of a buyer, null where none is needed. Safe to repeat: it stays his.',
  security: BEARER,
  parameters: [SALE_ID, ...SIGNATURE],
  responses: {
    200: json('the token', object({ token: orNull(text), endsAt: orNull(time) })),
    ...problems(...SALE, 'not_open', 'tokens_gone'),
  },
};

export const queuePaths = {
  '/v1/sales/{saleId}/queue': { post: joinQueue },
  '/v1/sales/{saleId}/queue/{ticket}': { get: readTicket },
  '/v1/sales/{saleId}/purchase-token': { post: fetchToken },
};
