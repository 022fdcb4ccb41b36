import { z } from 'zod';
import { CASE_KINDS, CASE_STATES, type PaymentCase } from '../../core/ports/payment-cases.js';
import { withoutUndefined } from '../../core/without-undefined.js';
import { json, problem } from '../answer.js';
import { defineRoute } from '../route.js';
import { amount, currency, isoTime, limit, nextOf, queryWord, rowId, text, time } from '../schemas.js';

/** Money that a person has to look after. */

const paymentCase = z
  .object({
    caseId: rowId,
    kind: z.enum(CASE_KINDS),
    subject: text.meta({ description: 'what the provider calls it: the id of a refund, a dispute or a payment' }),
    paymentId: text.nullable(),
    orderId: text.nullable(),
    amountCents: amount.nullable(),
    currency: currency.nullable(),
    detail: text,
    state: z.enum(CASE_STATES),
    createdAt: time,
    updatedAt: time,
  })
  .meta({ id: 'PaymentCase' });

export const listPaymentCases = defineRoute({
  method: 'get',
  path: '/admin/v1/payment-cases',
  label: 'admin',
  operationId: 'listPaymentCases',
  summary:
    'Refunds that failed, payments that were given back at the provider, disputes, and payments that could not be recorded; oldest first.',
  access: 'viewer',
  endpoint: null,
  query: z.strictObject({ state: queryWord(CASE_STATES).optional(), after: rowId.optional(), limit }),
  answers: {
    200: { description: 'a page', schema: z.object({ cases: z.array(paymentCase), next: text.nullable() }) },
  },
  problems: [],
  async handle({ query: { state, after: afterCaseId, limit: max } }, { paymentCases }) {
    const found = await paymentCases.list(withoutUndefined({ state }), { max, ...withoutUndefined({ afterCaseId }) });
    return json(200, 'found', { cases: found.map(caseBody), next: nextOf(found, max, 'caseId') });
  },
});

export const closePaymentCase = defineRoute({
  method: 'post',
  path: '/admin/v1/payment-cases/{caseId}/close',
  label: 'admin',
  operationId: 'closePaymentCase',
  summary: 'Say that a case is dealt with. Safe to repeat. News of the provider opens it again.',
  access: 'admin',
  endpoint: null,
  params: z.object({ caseId: rowId }),
  answers: { 200: { description: 'closed, now or before', schema: paymentCase } },
  problems: ['case_not_found'],
  async handle({ params: { caseId }, userId: actor }, { paymentCases }) {
    const closed = await paymentCases.close(caseId, actor);
    return closed === null ? problem('case_not_found') : json(200, 'closed', caseBody(closed));
  },
});

/** A case as a program reads it: times in ISO 8601. */
export const caseBody = ({ createdAtMs, updatedAtMs, ...found }: PaymentCase): object => ({
  ...found,
  createdAt: isoTime(createdAtMs),
  updatedAt: isoTime(updatedAtMs),
});
