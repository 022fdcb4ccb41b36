import { z } from 'zod';
import {
  paymentCase,
  paymentCasePage,
  refundPage,
  takenRefund,
  type ListedRefund,
  type PaymentCase,
  type Refund,
} from '../../contract/payments.js';
import { isoTime, limit, nextOf, paymentId, queryWord, rowId } from '../../contract/fields.js';
import { assertNever } from '../../core/errors.js';
import { CASE_STATES } from '../../core/ports/payment-cases.js';
import { REFUND_STATES } from '../../core/ports/refund-repository.js';
import { json, problem } from '../../http/answer.js';
import { defineRoute, type Route } from '../../http/route.js';
import { withoutUndefined } from '../../core/without-undefined.js';
import type { PaymentCase as StoredCase } from './payment-case-store.js';
import type { StoredRefund } from './refund-store.js';
import type { RefundServices } from './services.js';

/** Lists refunds and payment cases, claims a refund to pay it by hand, and closes a case. */

const listRefunds = defineRoute({
  method: 'get',
  path: '/admin/v1/refunds',
  label: 'admin',
  operationId: 'listRefunds',
  summary: 'Lists refunds, oldest first. Pass `next` as `after` to get the next page.',
  access: 'viewer',
  endpoint: null,
  query: z.strictObject({ state: queryWord(REFUND_STATES).optional(), after: paymentId.optional(), limit }),
  answers: {
    200: { description: 'a page', schema: refundPage },
  },
  problems: [],
  async handle({ query: { state, after: afterPaymentId, limit: max } }, { refunds, currenciesOf }: RefundServices) {
    const found = await refunds.list(withoutUndefined({ state }), { max, ...withoutUndefined({ afterPaymentId }) });
    const currencies = await currenciesOf(found.map(({ orderId }) => orderId));
    return json(200, 'found', {
      refunds: found.map((one) => withCurrency(one, currencies)),
      next: nextOf(found, max, 'paymentId'),
    });
  },
});

const ALREADY = 'The refund is done, by the provider or by hand. Pay nothing. The audit log says who claimed it.';

const BEING_ASKED = 'A keeper is making this refund now. Pay nothing, and try again in a minute.';

const takeOnRefund = defineRoute({
  method: 'post',
  path: '/admin/v1/refunds/{paymentId}/done',
  label: 'admin',
  operationId: 'takeOnRefund',
  summary: 'Claims a refund BEFORE you pay it by hand, so that the keeper does not pay it too. Pay only after a 200.',
  access: 'admin',
  endpoint: null,
  params: z.object({ paymentId }),
  answers: {
    200: {
      description: 'the refund was due and is now yours to pay',
      schema: takenRefund,
    },
  },
  problems: ['refund_not_found', 'wrong_state'],
  async handle({ params: { paymentId }, userId: actor }, { refunds }: RefundServices) {
    const answer = await refunds.takeOn(paymentId, actor);
    switch (answer.outcome) {
      case 'done':
        return json(200, 'done', { outcome: 'done', refund: refundBody(answer.refund) });
      case 'already_refunded': // no 200 for a repeat, because a second operator could then pay again
        return problem('wrong_state', { detail: ALREADY });
      case 'being_asked':
        return problem('wrong_state', { detail: BEING_ASKED });
      case 'not_found':
        return problem('refund_not_found');
      default:
        return assertNever(answer);
    }
  },
});

/** Adds the currency to a refund. A payment in a currency other than that of its order does not store its currency. */
const withCurrency = (refund: StoredRefund, currencies: ReadonlyMap<string, string>): ListedRefund => ({
  ...refundBody(refund),
  currency: refund.reason === 'wrong_currency' ? null : (currencies.get(refund.orderId) ?? null),
});

/** Formats a refund for programs: times in ISO 8601. */
export const refundBody = ({ createdAtMs, updatedAtMs, ...refund }: StoredRefund): Refund => ({
  ...refund,
  createdAt: isoTime(createdAtMs),
  updatedAt: isoTime(updatedAtMs),
});

const listPaymentCases = defineRoute({
  method: 'get',
  path: '/admin/v1/payment-cases',
  label: 'admin',
  operationId: 'listPaymentCases',
  summary:
    'Lists failed refunds, refunds made at the provider, disputes, and payments that could not be recorded, oldest first.',
  access: 'viewer',
  endpoint: null,
  query: z.strictObject({ state: queryWord(CASE_STATES).optional(), after: rowId.optional(), limit }),
  answers: {
    200: { description: 'a page', schema: paymentCasePage },
  },
  problems: [],
  async handle({ query: { state, after: afterCaseId, limit: max } }, { paymentCases }: RefundServices) {
    const found = await paymentCases.list(withoutUndefined({ state }), { max, ...withoutUndefined({ afterCaseId }) });
    return json(200, 'found', { cases: found.map(caseBody), next: nextOf(found, max, 'caseId') });
  },
});

const closePaymentCase = defineRoute({
  method: 'post',
  path: '/admin/v1/payment-cases/{caseId}/close',
  label: 'admin',
  operationId: 'closePaymentCase',
  summary: 'Closes a case. A new report of the provider reopens it. Safe to repeat.',
  access: 'admin',
  endpoint: null,
  params: z.object({ caseId: rowId }),
  answers: { 200: { description: 'the closed case', schema: paymentCase } },
  problems: ['case_not_found'],
  async handle({ params: { caseId }, userId: actor }, { paymentCases }: RefundServices) {
    const closed = await paymentCases.close(caseId, actor);
    return closed === null ? problem('case_not_found') : json(200, 'closed', caseBody(closed));
  },
});

/** Formats a case for programs: times in ISO 8601. */
export const caseBody = ({ createdAtMs, updatedAtMs, ...found }: StoredCase): PaymentCase => ({
  ...found,
  createdAt: isoTime(createdAtMs),
  updatedAt: isoTime(updatedAtMs),
});

export const refundRoutes: readonly Route<RefundServices>[] = [
  listRefunds,
  takeOnRefund,
  listPaymentCases,
  closePaymentCase,
];
