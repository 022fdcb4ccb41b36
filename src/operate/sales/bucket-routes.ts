import { z } from 'zod';
import { bucketsOfSale, repairedSale, reshardedSale } from '../../contract/sales.js';
import { saleParams } from '../../contract/fields.js';
import { BUCKETS_MAX } from '../../core/bucket.js';
import { assertNever } from '../../core/errors.js';
import { must } from '../../core/field-errors.js';
import { RESHARD_SENTENCES } from '../../core/sale-repair.js';
import type { OrderedRepair } from '../../recovery/repair/repair-jobs.js';
import { json, problem, type Answer } from '../../http/answer.js';
import { jsonBody, operatorRoute, optionalJsonBody, type RouteServices } from '../../http/route.js';
import type { SaleServices } from './services.js';

const bucketsError = { error: must(`a whole number from 2 to ${BUCKETS_MAX}`) };

export const reshardSale = operatorRoute({
  method: 'post',
  path: '/admin/v1/sales/{saleId}/reshard',
  operationId: 'reshardSale',
  summary: 'Splits the stock of a running sale into more buckets. Purchases wait for a moment.',
  access: 'operator',
  params: saleParams,
  body: jsonBody(z.strictObject({ buckets: z.int(bucketsError).min(2, bucketsError).max(BUCKETS_MAX, bucketsError) })),
  answers: { 200: { description: 'the new split', schema: reshardedSale } },
  problems: ['not_found', 'wrong_state', 'repairing'],
  async handle({ params, body: { buckets }, userId: actor }, { reshard }: SaleServices) {
    const { outcome, ...facts } = await reshard(params.saleId, { actor, buckets });
    if (outcome === 'resharded') return json(200, outcome, facts);
    if (outcome === 'not_found') return problem(outcome);
    if (outcome === 'in_repair') return problem('repairing');
    return problem('wrong_state', { detail: RESHARD_SENTENCES[outcome] });
  },
});

export const readBuckets = operatorRoute({
  method: 'get',
  path: '/admin/v1/sales/{saleId}/buckets',
  operationId: 'readBuckets',
  summary: 'Lists the buckets of a sale in Redis, with an error for each whose server does not answer.',
  access: 'viewer',
  params: saleParams,
  answers: { 200: { description: 'all buckets; null means not loaded or unknown', schema: bucketsOfSale } },
  problems: ['not_found'],
  async handle({ params: { saleId } }, { sales, bucketsOf }: RouteServices & SaleServices) {
    const sale = await sales.show(saleId);
    return sale === null ? problem('not_found') : json(200, 'found', { saleId, buckets: await bucketsOf(sale) });
  },
});

export const repairSale = operatorRoute({
  method: 'post',
  path: '/admin/v1/sales/{saleId}/repair',
  operationId: 'repairSale',
  summary:
    'Rebuilds a sale in Redis from MySQL, as the keeper does when needed. `force` rebuilds it in any case. Purchases are refused' +
    ' until it ends, which takes seconds, or longer with very many orders.',
  access: 'operator',
  params: saleParams,
  body: optionalJsonBody(z.strictObject({ force: z.boolean().optional() }), {}),
  answers: {
    200: {
      description: '`not_needed`: all buckets were intact, and nothing was changed',
      schema: repairedSale,
    },
  },
  problems: ['not_found', 'wrong_state', 'repairing'],
  async handle({ params: { saleId }, body: { force = false }, userId: actor }, { repair }: SaleServices) {
    return repairAnswer(await repair(saleId, { actor, force }));
  },
});

function repairAnswer(end: OrderedRepair): Answer<200 | 'not_found' | 'wrong_state' | 'repairing'> {
  switch (end.outcome) {
    case 'repaired':
    case 'not_needed':
      return json(200, end.outcome, end);
    case 'not_found':
      return problem('not_found');
    case 'busy':
      return problem('repairing', { detail: 'Another repair of this sale is running. It ends within seconds.' });
    case 'superseded':
      return problem('wrong_state', {
        detail: 'Another repair took over the sale, or Redis was restarted. Check again in a minute.',
      });
    case 'draft':
      return problem('wrong_state', { detail: 'The sale is a draft: nothing of it is in Redis yet.' });
    case 'retired':
      return problem('wrong_state', { detail: 'The sale is retired: only MySQL has it.' });
    default:
      return assertNever(end);
  }
}
