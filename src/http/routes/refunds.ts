import { z } from 'zod';
import { assertNever } from '../../core/errors.js';
import { isPaymentId } from '../../core/ids.js';
import { REFUND_STATES, type RefundFilter, type RefundPage } from '../../core/ports/refund-repository.js';
import type { FieldError } from '../../core/field-errors.js';
import { refundBody } from '../refund-body.js';
import type { HttpServices } from '../services.js';
import { asAdmin } from './admin-sales.js';
import { fieldErrors, queryLimit, wrongFields } from './query-fields.js';
import type { Router } from './router.js';

const LISTED_DEFAULT = 50;
const LISTED_MAX = 200;

const query = z.strictObject({
  state: z.enum(REFUND_STATES, `must be one of ${REFUND_STATES.join(', ')}`).optional(),
  after: z.string('must be given once').refine(isPaymentId, 'must be a payment id').optional(),
  limit: queryLimit(LISTED_MAX).optional(),
});

/** What is owed back to buyers, and taking one on to pay it by hand. */
export function mountRefunds(router: Router, services: HttpServices): void {
  const { refunds } = services;

  router.mount('admin', '/admin/v1/refunds', {
    get: asAdmin(services, async ({ req, res, replies }) => {
      const read = readRefundQuery({ ...req.query });
      if (!('page' in read)) {
        return replies.problem(req, res, 'bad_request', { detail: wrongFields(read), errors: read });
      }
      const found = await refunds.list(read.filter, read.page);
      const next = found.length < read.page.max ? null : (found.at(-1)?.paymentId ?? null);
      replies.json(req, res, 200, 'found', { refunds: found.map(refundBody), next });
    }),
  });

  router.mount('admin', '/admin/v1/refunds/{paymentId}/done', {
    post: asAdmin(services, async ({ req, res, replies, param }, { userId: actor }) => {
      const paymentId = param('paymentId');
      if (!isPaymentId(paymentId)) {
        return replies.problem(req, res, 'bad_request', { detail: 'The address must hold a payment id.' });
      }
      const answer = await refunds.takeOn(paymentId, actor);
      switch (answer.outcome) {
        case 'done':
          return replies.json(req, res, 200, 'done', { outcome: 'done', refund: refundBody(answer.refund) });
        case 'already_refunded': // no 200 for a repeat: who pays by hand after it would pay twice
          return replies.problem(req, res, 'wrong_state', { detail: ALREADY });
        case 'not_found':
          return replies.problem(req, res, 'refund_not_found');
        default:
          return assertNever(answer);
      }
    }),
  });
}

const ALREADY = 'The refund is done, by the provider or by hand: pay nothing. The audit log says who took it on.';

function readRefundQuery(raw: unknown): { filter: RefundFilter; page: RefundPage } | readonly FieldError[] {
  const read = query.safeParse(raw);
  if (!read.success) return fieldErrors(read.error);
  const { state, after, limit: max = LISTED_DEFAULT } = read.data;
  return {
    filter: state === undefined ? {} : { state },
    page: { max, ...(after === undefined ? {} : { afterPaymentId: after }) },
  };
}
