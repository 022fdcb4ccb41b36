import { z } from 'zod';
import {
  filterObject,
  isoTime,
  limit,
  nextOf,
  queryText,
  queryTime,
  queryWord,
  saleId,
  saleParams,
  text,
} from '../../contract/fields.js';
import { reshardedSale, saleSchema, type Sale as SaleBody } from '../../contract/sales.js';
import { fieldSentences, must } from '../../core/field-errors.js';
import { assertNever } from '../../core/errors.js';
import { RESHARD_SENTENCES } from '../../core/sale-repair.js';
import { SALE_STATES, type Sale } from '../../core/sale.js';
import { BUCKETS_MAX } from '../../core/bucket.js';
import { durationText } from '../../core/duration.js';
import { newSale, readNewSale } from '../../sales/new-sale.js';
import type { SaleAdminAnswer } from '../../sales/sale-admin.js';
import { json, problem, type Answer } from '../../http/answer.js';
import { checkedBody, defineRoute, jsonBody, type RouteServices } from '../../http/route.js';
import { withoutUndefined } from '../../core/without-undefined.js';

/** Lets operators create sales and move them through their states. */

export const createSale = defineRoute({
  method: 'post',
  path: '/admin/v1/sales',
  label: 'admin',
  operationId: 'createSale',
  summary: 'Creates a sale as a draft.',
  access: 'admin',
  endpoint: null,
  body: checkedBody(newSale.meta({ id: 'NewSale' }), (json, { clock, prices }) => {
    const read = readNewSale(json, clock.nowMs(), prices);
    return 'sale' in read ? { value: read.sale } : read;
  }),
  answers: {
    201: {
      description: 'the new sale, a draft',
      schema: saleSchema,
      headers: { Location: 'where the sale is read' },
    },
  },
  problems: ['sale_overlaps'],
  async handle({ body, userId }, { sales }) {
    const made = await sales.create(body, userId);
    if (made.outcome === 'overlaps') {
      return problem('sale_overlaps', { detail: fieldSentences(made.errors), errors: made.errors });
    }
    const { sale } = made;
    return json(201, 'created', saleBody(sale), ['Location', `/admin/v1/sales/${sale.saleId}`]);
  },
});

export const listSales = defineRoute({
  method: 'get',
  path: '/admin/v1/sales',
  label: 'admin',
  operationId: 'listSales',
  summary: 'Lists sales, newest first. Pass `next` as `before` to get the next page.',
  access: 'viewer',
  endpoint: null,
  query: filterObject({
    state: queryWord(SALE_STATES).optional(),
    sku: queryText(64).optional(),
    opensFrom: queryTime.optional(),
    opensTo: queryTime.optional(),
    before: saleId.optional(),
    limit,
  }),
  answers: { 200: { description: 'a page', schema: z.object({ sales: z.array(saleSchema), next: text.nullable() }) } },
  problems: [],
  async handle({ query }, { sales }) {
    const { state, sku, opensFrom: opensFromMs, opensTo: opensToMs, before: beforeId, limit: max } = query;
    const states = state === undefined ? undefined : [state];
    const found = await sales.list({ max, ...withoutUndefined({ states, sku, opensFromMs, opensToMs, beforeId }) });
    return json(200, 'found', { sales: found.map(saleBody), next: nextOf(found, max, 'saleId') });
  },
});

export const readSale = defineRoute({
  method: 'get',
  path: '/admin/v1/sales/{saleId}',
  label: 'admin',
  operationId: 'readSale',
  summary: 'Returns a sale as stored in MySQL.',
  access: 'viewer',
  endpoint: null,
  params: saleParams,
  answers: { 200: { description: 'the sale', schema: saleSchema } },
  problems: ['not_found'],
  async handle({ params: { saleId } }, { sales }) {
    const sale = await sales.show(saleId);
    return sale === null ? problem('not_found') : json(200, 'found', saleBody(sale));
  },
});

type Move = (sales: RouteServices['sales'], saleId: string, actor: string) => Promise<SaleAdminAnswer>;

const move = (verb: string, access: 'operator' | 'admin', summary: string, make: Move) =>
  defineRoute({
    method: 'post',
    path: `/admin/v1/sales/{saleId}/${verb}`,
    label: 'admin',
    operationId: `${verb}Sale`,
    summary: `${summary} Safe to repeat.`,
    access,
    endpoint: null,
    params: saleParams,
    answers: { 200: { description: 'the changed sale', schema: saleSchema } },
    problems: ['not_found', 'wrong_state', 'not_warmed', 'repairing'],
    handle: async ({ params, userId }, { sales }) => moveAnswer(verb, await make(sales, params.saleId, userId)),
  });

export const saleMoves = [
  move('warm', 'operator', 'Loads the stock into Redis.', (sales, saleId, actor) => sales.warm(saleId, actor)),
  move('open', 'operator', 'Opens the sale to buyers during its window.', (sales, saleId, actor) =>
    sales.open(saleId, actor),
  ),
  move('pause', 'operator', 'Pauses the sale. Purchases get `paused` until it is resumed.', (sales, saleId, actor) =>
    sales.pause(saleId, actor),
  ),
  // a paused sale resumes as a warm sale opens
  move('resume', 'operator', 'Resumes a paused sale.', (sales, saleId, actor) => sales.open(saleId, actor)),
  move('close', 'admin', 'Closes the sale for good.', (sales, saleId, actor) => sales.close(saleId, actor)),
];

const bucketsError = { error: must(`a whole number from 2 to ${BUCKETS_MAX}`) };

export const reshardSale = defineRoute({
  method: 'post',
  path: '/admin/v1/sales/{saleId}/reshard',
  label: 'admin',
  operationId: 'reshardSale',
  summary: 'Splits the stock of a running sale into more buckets. Purchases wait for a moment.',
  access: 'operator',
  endpoint: null,
  params: saleParams,
  body: jsonBody(z.strictObject({ buckets: z.int(bucketsError).min(2, bucketsError).max(BUCKETS_MAX, bucketsError) })),
  answers: {
    200: {
      description: 'the new split',
      schema: reshardedSale,
    },
  },
  problems: ['not_found', 'wrong_state', 'repairing'],
  async handle({ params, body: { buckets }, userId: actor }, { reshard }) {
    const { outcome, ...facts } = await reshard(params.saleId, { actor, buckets });
    if (outcome === 'resharded') return json(200, outcome, facts);
    if (outcome === 'not_found') return problem(outcome);
    if (outcome === 'in_repair') return problem('repairing');
    return problem('wrong_state', { detail: RESHARD_SENTENCES[outcome] });
  },
});

function moveAnswer(
  verb: string,
  answer: SaleAdminAnswer,
): Answer<200 | 'wrong_state' | 'not_found' | 'not_warmed' | 'repairing'> {
  if (answer.outcome === 'done') return json(200, answer.outcome, saleBody(answer.sale));
  return notMoved(answer, (state) => `Cannot ${verb} a sale that is ${state}.`);
}

/** Returns the problem of a refused move. @param sentence the detail if the state of the sale forbids the move */
export function notMoved(
  answer: Exclude<SaleAdminAnswer, { readonly outcome: 'done' }>,
  sentence: (state: string) => string,
): Answer<'wrong_state' | 'not_found' | 'not_warmed' | 'repairing'> {
  switch (answer.outcome) {
    case 'wrong_state':
      return problem(answer.outcome, { detail: sentence(answer.sale.state) });
    case 'not_found':
    case 'not_warmed':
    case 'repairing':
      return problem(answer.outcome);
    default:
      return assertNever(answer);
  }
}

/** Formats a sale for programs, over HTTP and on the command line: times in ISO 8601. */
export function saleBody({ opensAtMs, closesAtMs, warmBeforeMs, retiredAtMs, ...sale }: Sale): SaleBody {
  const warmBefore = warmBeforeMs === null ? null : durationText(warmBeforeMs);
  const retiredAt = retiredAtMs === null ? null : isoTime(retiredAtMs);
  return { ...sale, opensAt: isoTime(opensAtMs), closesAt: isoTime(closesAtMs), warmBefore, retiredAt };
}
