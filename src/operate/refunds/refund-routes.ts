import { z } from 'zod';
import { refundPage, takenRefund, type ListedRefund, type Refund } from '../../contract/payments.js';
import { isoTime, limit, nextOf, paymentId, queryWord } from '../../contract/fields.js';
import { assertNever } from '../../core/errors.js';
import { REFUND_STATES, type StoredRefund } from '../../core/ports/refund-repository.js';
import { json, problem } from '../../http/answer.js';
import { defineRoute } from '../../http/route.js';
import { withoutUndefined } from '../../core/without-undefined.js';

/** Lists refunds, and claims a refund to pay it by hand. */

export const listRefunds = defineRoute({
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
  async handle({ query: { state, after: afterPaymentId, limit: max } }, { refunds, orderSearch }) {
    const found = await refunds.list(withoutUndefined({ state }), { max, ...withoutUndefined({ afterPaymentId }) });
    const currencies = await orderSearch.currenciesOf(found.map(({ orderId }) => orderId));
    return json(200, 'found', {
      refunds: found.map((one) => withCurrency(one, currencies)),
      next: nextOf(found, max, 'paymentId'),
    });
  },
});

const ALREADY = 'The refund is done, by the provider or by hand. Pay nothing. The audit log says who claimed it.';

const BEING_ASKED = 'A keeper is making this refund now. Pay nothing, and try again in a minute.';

export const takeOnRefund = defineRoute({
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
  async handle({ params: { paymentId }, userId: actor }, { refunds }) {
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
