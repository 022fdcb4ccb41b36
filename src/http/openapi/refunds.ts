import { REFUND_STATES } from '../../core/ports/refund-repository.js';
import { ADMIN, BEARER, filterBy, json, list, object, orNull, parameter, paymentId, problems, ref } from './parts.js';
import { ROWS, text } from './parts.js';

export const refundPaths = {
  '/admin/v1/refunds': {
    get: {
      operationId: 'listRefunds',
      summary: 'What is or was owed back to buyers, oldest first; `next` goes into `after` for the next page.',
      security: BEARER,
      parameters: [filterBy('state', { enum: REFUND_STATES }), filterBy('after', paymentId), ROWS],
      responses: {
        200: json('a page', object({ refunds: list('Refund'), next: orNull(text) })),
        ...problems(...ADMIN),
      },
    },
  },
  '/admin/v1/refunds/{paymentId}/done': {
    post: {
      operationId: 'takeOnRefund',
      summary:
        'Take a refund on BEFORE paying it by hand, so that the keeper does not pay it too. Only a 200 is a reason to pay.',
      security: BEARER,
      parameters: [parameter('path', 'paymentId', paymentId)],
      responses: {
        200: json('it was due, and is yours to pay', object({ outcome: { const: 'done' }, refund: ref('Refund') })),
        ...problems(...ADMIN, 'refund_not_found', 'wrong_state'),
      },
    },
  },
};
