import { z } from 'zod';
import { paymentCase, paymentCasePage, type PaymentCase } from '../../contract/payments.js';
import { isoTime, limit, nextOf, queryWord, rowId } from '../../contract/fields.js';
import { CASE_STATES, type PaymentCase as StoredCase } from '../../core/ports/payment-cases.js';
import { withoutUndefined } from '../../core/without-undefined.js';
import { json, problem } from '../../http/answer.js';
import { defineRoute } from '../../http/route.js';

export const listPaymentCases = defineRoute({
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
  summary: 'Closes a case. A new report of the provider reopens it. Safe to repeat.',
  access: 'admin',
  endpoint: null,
  params: z.object({ caseId: rowId }),
  answers: { 200: { description: 'the closed case', schema: paymentCase } },
  problems: ['case_not_found'],
  async handle({ params: { caseId }, userId: actor }, { paymentCases }) {
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
