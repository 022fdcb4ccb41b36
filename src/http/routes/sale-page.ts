import { isoTime, saleParams } from '../../contract/fields.js';
import { salePage, type Proof } from '../../contract/sales.js';
import { durationTextOrNull } from '../../core/duration.js';
import type { GetSaleAnswer, SaleView } from '../../sales/get-sale.js';
import type { Body } from '../../admission/degrade/degraded-reads.js';
import { defineRoute, type RouteServices } from '../route.js';
import { answerRead, readable } from './degraded-read.js';

/** Serves the public data of a sale. Shared caches keep it for a second, which absorbs a crowd of reloads. */
export const readSalePage = defineRoute({
  method: 'get',
  path: '/v1/sales/{saleId}',
  label: 'sale',
  operationId: 'readSalePage',
  summary: 'Returns the public page data of a sale.',
  access: 'anyone',
  endpoint: 'sale',
  params: saleParams,
  answers: {
    200: readable('the sale', salePage),
    204: { description: 'no data now, because of overload' },
  },
  problems: ['not_found', 'loading'],
  async handle({ req, params: { saleId } }, services) {
    let outcome: GetSaleAnswer['outcome'] = 'not_found';
    return answerRead<'not_found' | 'loading'>(
      {
        endpoint: 'sale',
        key: saleId,
        ids: { saleId },
        requestId: null,
        caller: () => services.addressOf(req),
        word: () => outcome,
        missing: () => (outcome === 'loading' ? 'loading' : 'not_found'),
        headers: ['Cache-Control', 'public, max-age=1'],
        async source() {
          const answer = await services.getSale.get(saleId);
          outcome = answer.outcome;
          return answer.outcome === 'found' ? pageOf(answer.view, proofsOf(saleId, services)) : null;
        },
      },
      services,
    );
  },
});

function pageOf({ opensAtMs, closesAtMs, nowMs, paymentWindowMs, ...view }: SaleView, asksFor: readonly Proof[]): Body {
  const times = { opensAt: isoTime(opensAtMs), closesAt: isoTime(closesAtMs), serverTime: isoTime(nowMs) };
  const paymentWindow = durationTextOrNull(paymentWindowMs);
  return { ...view, paymentWindow, asksFor, ...times };
}

/** Returns the proofs that the current rules require, so that a buyer page need not learn them from a refusal. */
function proofsOf(saleId: string, { signatures, tokens, rooms }: RouteServices): Proof[] {
  const proofs: Proof[] = [];
  if (signatures.areNeeded(saleId)) proofs.push('signature');
  if (tokens.areIssued(saleId)) proofs.push('purchase_token');
  if (rooms.isFor(saleId)) proofs.push('queue_pass');
  return proofs;
}
