import { z } from 'zod';
import {
  paymentCase,
  paymentCasePage,
  refundCounts,
  refundPage,
  retriedRefund,
  takenRefund,
  type ListedRefund,
  type PaymentCase,
  type Refund,
} from '../../contract/payments.js';
import {
  isoTime,
  limit,
  nextOf,
  paymentId,
  queryWord,
  rowId,
  saleId,
  saleParams,
  text,
} from '../../contract/fields.js';
import { matching } from '../../core/field-errors.js';
import { PAYMENT_ID } from '../../core/ids.js';
import { ORDER_REFUND_STATES, type RefundRefused } from '../../core/ports/order-refunds.js';
import { whyNoRefund } from '../../core/why-no-refund.js';
import { assertNever } from '../../core/errors.js';
import { CASE_STATES } from '../../core/ports/payment-cases.js';
import { json, problem } from '../../http/answer.js';
import { jsonBody, operatorRoute, type Route } from '../../http/route.js';
import { withoutUndefined } from '../../core/without-undefined.js';
import type { PaymentCase as StoredCase } from './payment-case-store.js';
import { refundName, REFUND_NAME, storedOrderRefund, type StoredRefund } from './refund-store.js';
import type { RefundServices } from './services.js';

const PLACE = new RegExp(`${PAYMENT_ID.source}|${REFUND_NAME.source}`);

const listRefunds = operatorRoute({
  method: 'get',
  path: '/admin/v1/refunds',
  operationId: 'listRefunds',
  summary:
    'Lists refunds: first those of payments that paid no order, then those that operators ordered, each oldest first. Pass `next` as `after` to get the next page.',
  access: 'viewer',
  query: z.strictObject({
    state: queryWord(ORDER_REFUND_STATES).optional(),
    sale: saleId.optional(),
    after: matching('the `next` of an earlier page', PLACE).optional(),
    limit,
  }),
  answers: { 200: { description: 'a page', schema: refundPage } },
  async handle({ query: { state, sale, after, limit: max } }, { refunds, currenciesOf }: RefundServices) {
    const filter = withoutUndefined({ state, saleId: sale });
    const found = await refunds.list(filter, { max, ...withoutUndefined({ after }) });
    const currencies = await currenciesOf(found.map(({ orderId }) => orderId));
    return json(200, 'found', {
      refunds: found.map((one) => withCurrency(one, currencies)),
      next: nextRefund(found, max),
    });
  },
});

/** Null if no page follows. */
function nextRefund(found: readonly StoredRefund[], max: number): string | null {
  const last = found.at(-1);
  return found.length < max || last === undefined ? null : refundName(last);
}

const countRefunds = operatorRoute({
  method: 'get',
  path: '/admin/v1/sales/{saleId}/refunds',
  operationId: 'countRefunds',
  summary: 'Counts the refunds of paid orders of a sale by state, as after a void.',
  access: 'viewer',
  params: saleParams,
  answers: { 200: { description: 'the states that occur', schema: refundCounts } },
  async handle({ params: { saleId } }, { refunds }: RefundServices) {
    return json(200, 'found', { states: await refunds.counts(saleId) });
  },
});

const ALREADY = 'The refund is done, by the provider or by hand. Pay nothing. The audit log says who claimed it.';

const BEING_ASKED = 'A keeper is making this refund now. Pay nothing, and try again in a minute.';

const takeOnRefund = operatorRoute({
  method: 'post',
  path: '/admin/v1/refunds/{paymentId}/done',
  operationId: 'takeOnRefund',
  summary: 'Claims a refund BEFORE you pay it by hand, so that the keeper does not pay it too. Pay only after a 200.',
  access: 'admin',
  params: z.object({ paymentId }),
  answers: { 200: { description: 'the refund was due and is now yours to pay', schema: takenRefund } },
  problems: ['refund_not_found', 'wrong_state'],
  async handle({ params: { paymentId }, userId: actor }, { refunds }: RefundServices) {
    const answer = await refunds.takeOn(paymentId, actor);
    switch (answer.outcome) {
      case 'done':
        return json(200, 'done', { outcome: 'done', refund: refundBody(answer.refund) });
      case 'already_refunded': // not a 200 for a repeat, because a second operator could then pay again
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

const refundParams = z.object({ refundId: rowId });
const why = jsonBody(
  z.strictObject({ reason: text.trim().min(1).max(500).meta({ description: 'for the audit log' }) }),
);

const retryRefund = operatorRoute({
  method: 'post',
  path: '/admin/v1/order-refunds/{refundId}/retry',
  operationId: 'retryRefund',
  summary: 'Orders a failed refund of a paid order once more, as a new refund. Safe to repeat.',
  access: 'admin',
  params: refundParams,
  body: why,
  answers: { 200: { description: 'the new refund, which is due or done', schema: retriedRefund } },
  problems: ['refund_not_found', 'wrong_state'],
  async handle({ params: { refundId }, body: { reason }, userId: actor }, { orderRefunds }: RefundServices) {
    const answer = await orderRefunds.again(refundId, reason, actor);
    if (answer.outcome === 'not_found') return problem('refund_not_found');
    if (answer.outcome !== 'refunding' && answer.outcome !== 'refunded')
      return problem('wrong_state', { detail: whyNotAgain(answer) });
    const { outcome, refund } = answer;
    return json(200, outcome, { outcome, refund: refundBody(storedOrderRefund(refund)) });
  },
});

const takeOnOrderRefund = operatorRoute({
  method: 'post',
  path: '/admin/v1/order-refunds/{refundId}/done',
  operationId: 'takeOnOrderRefund',
  summary:
    'Claims a due or failed refund of a paid order BEFORE you pay it by hand, so that nobody else pays it. Pay only after a 200.',
  access: 'admin',
  params: refundParams,
  body: why,
  answers: { 200: { description: 'the refund is now yours to pay', schema: takenRefund } },
  problems: ['refund_not_found', 'wrong_state'],
  async handle({ params: { refundId }, body: { reason }, userId: actor }, { orderRefunds }: RefundServices) {
    const answer = await orderRefunds.takeOnRefund(refundId, reason, actor);
    if (answer.outcome === 'not_found') return problem('refund_not_found');
    if (answer.outcome !== 'done') return problem('wrong_state', { detail: whyNotAgain(answer) });
    return json(200, 'done', { outcome: 'done', refund: refundBody(storedOrderRefund(answer.refund)) });
  },
});

/** Explains why a failed refund was neither retried nor claimed, for HTTP and for the command line. */
export function whyNotAgain(answer: NotAgain): string {
  if (answer.outcome === 'already_refunded') return ALREADY;
  if (answer.outcome === 'being_asked') return BEING_ASKED;
  if (answer.outcome === 'too_much') return 'Less than that is left of this order to refund.';
  if (answer.outcome !== 'refund_failed') return whyNoRefund(answer, '');
  return `It was tried again as refund ${answer.refund?.refundId}, which failed too. Use that refund.`;
}
type NotAgain = RefundRefused | { readonly outcome: 'already_refunded' } | { readonly outcome: 'being_asked' };

/** Whether the payment was in a different currency from its order. That currency is not stored. */
export const isOfOtherCurrency = ({ refundId, reason }: StoredRefund): boolean =>
  refundId === null && reason === 'wrong_currency';

const withCurrency = (refund: StoredRefund, currencies: ReadonlyMap<string, string>): ListedRefund => ({
  ...refundBody(refund),
  currency: isOfOtherCurrency(refund) ? null : (currencies.get(refund.orderId) ?? null),
});

export const refundBody = ({ createdAtMs, updatedAtMs, ...refund }: StoredRefund): Refund => ({
  ...refund,
  createdAt: isoTime(createdAtMs),
  updatedAt: isoTime(updatedAtMs),
});

const listPaymentCases = operatorRoute({
  method: 'get',
  path: '/admin/v1/payment-cases',
  operationId: 'listPaymentCases',
  summary:
    'Lists failed refunds, refunds made at the provider, disputes, and payments that could not be recorded, oldest first.',
  access: 'viewer',
  query: z.strictObject({ state: queryWord(CASE_STATES).optional(), after: rowId.optional(), limit }),
  answers: { 200: { description: 'a page', schema: paymentCasePage } },
  async handle({ query: { state, after: afterCaseId, limit: max } }, { paymentCases }: RefundServices) {
    const found = await paymentCases.list(withoutUndefined({ state }), { max, ...withoutUndefined({ afterCaseId }) });
    return json(200, 'found', { cases: found.map(caseBody), next: nextOf(found, max, 'caseId') });
  },
});

const closePaymentCase = operatorRoute({
  method: 'post',
  path: '/admin/v1/payment-cases/{caseId}/close',
  operationId: 'closePaymentCase',
  summary: 'Closes a case. A new report of the provider reopens it. Safe to repeat.',
  access: 'admin',
  params: z.object({ caseId: rowId }),
  answers: { 200: { description: 'the closed case', schema: paymentCase } },
  problems: ['case_not_found'],
  async handle({ params: { caseId }, userId: actor }, { paymentCases }: RefundServices) {
    const closed = await paymentCases.close(caseId, actor);
    return closed === null ? problem('case_not_found') : json(200, 'closed', caseBody(closed));
  },
});

export const caseBody = ({ createdAtMs, updatedAtMs, ...found }: StoredCase): PaymentCase => ({
  ...found,
  createdAt: isoTime(createdAtMs),
  updatedAt: isoTime(updatedAtMs),
});

export const refundRoutes: readonly Route<RefundServices>[] = [
  listRefunds,
  countRefunds,
  takeOnRefund,
  retryRefund,
  takeOnOrderRefund,
  listPaymentCases,
  closePaymentCase,
];
