import { z } from 'zod';
import {
  filterObject,
  isoTime,
  isoTimeOrNull,
  limit,
  nextOf,
  queryText,
  queryTime,
  queryWord,
  saleId,
  saleParams,
  text,
} from '../../contract/fields.js';
import {
  movedSale,
  plannedSale,
  saleSchema,
  type PlannedSale as PlannedBody,
  type Sale as SaleBody,
} from '../../contract/sales.js';
import { fieldSentences } from '../../core/field-errors.js';
import { assertNever } from '../../core/errors.js';
import { SALE_STATES, type Sale } from '../../core/sale.js';
import { durationTextOrNull } from '../../core/duration.js';
import { newSale, readNewSale } from '../../sales/new-sale.js';
import type { SaleAdminAnswer } from '../../sales/sale-admin.js';
import type { PlannedSale } from '../../sales/schedule/plan-sales.js';
import { json, problem, type Answer } from '../../http/answer.js';
import { checkedBody, operatorRoute, type RouteServices } from '../../http/route.js';
import { withoutUndefined } from '../../core/without-undefined.js';
import type { SaleServices } from './services.js';

export const createSale = operatorRoute({
  method: 'post',
  path: '/admin/v1/sales',
  operationId: 'createSale',
  summary: 'Creates a sale as a draft.',
  access: 'admin',
  body: checkedBody(newSale.meta({ id: 'NewSale' }), (json, { clock, prices }) => {
    const read = readNewSale(json, clock.nowMs(), prices);
    return 'sale' in read ? { value: read.sale } : read;
  }),
  answers: {
    201: { description: 'the new sale, a draft', schema: saleSchema, headers: { Location: 'where the sale is read' } },
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

export const listSales = operatorRoute({
  method: 'get',
  path: '/admin/v1/sales',
  operationId: 'listSales',
  summary: 'Lists sales, newest first. Pass `next` as `before` to get the next page.',
  access: 'viewer',
  query: filterObject({
    state: queryWord(SALE_STATES).optional(),
    sku: queryText(64).optional(),
    opensFrom: queryTime.optional(),
    opensTo: queryTime.optional(),
    before: saleId.optional(),
    limit,
  }),
  answers: { 200: { description: 'a page', schema: z.object({ sales: z.array(saleSchema), next: text.nullable() }) } },
  async handle({ query }, { sales }) {
    const { state, sku, opensFrom: opensFromMs, opensTo: opensToMs, before: beforeId, limit: max } = query;
    const states = state === undefined ? undefined : [state];
    const found = await sales.list({ max, ...withoutUndefined({ states, sku, opensFromMs, opensToMs, beforeId }) });
    return json(200, 'found', { sales: found.map(saleBody), next: nextOf(found, max, 'saleId') });
  },
});

const WEEK_MS = 7 * 86_400_000;

/** Lists the sales of the coming week, with what each of them still lacks. */
export const readSalePlan = operatorRoute({
  method: 'get',
  path: '/admin/v1/sale-plan',
  operationId: 'readSalePlan',
  summary: 'Lists sales that open within a week or are open, with what each still lacks.',
  access: 'viewer',
  answers: { 200: { description: 'ordered by opening time', schema: z.object({ sales: z.array(plannedSale) }) } },
  async handle(_call, { plan }: SaleServices) {
    const planned = await plan(WEEK_MS);
    return json(200, 'found', { sales: planned.map(plannedBody) });
  },
});

export const readSale = operatorRoute({
  method: 'get',
  path: '/admin/v1/sales/{saleId}',
  operationId: 'readSale',
  summary: 'Returns a sale as stored in MySQL.',
  access: 'viewer',
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
  operatorRoute({
    method: 'post',
    path: `/admin/v1/sales/{saleId}/${verb}`,
    operationId: `${verb}Sale`,
    summary: `${summary} Safe to repeat.`,
    access,
    params: saleParams,
    answers: { 200: { description: 'the changed sale', schema: movedSale } },
    problems: ['not_found', 'wrong_state'],
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
  // a paused sale resumes in the same way as a warm sale opens
  move('resume', 'operator', 'Resumes a paused sale.', (sales, saleId, actor) => sales.open(saleId, actor)),
  move('close', 'admin', 'Closes the sale for good.', (sales, saleId, actor) => sales.close(saleId, actor)),
];

function moveAnswer(verb: string, answer: SaleAdminAnswer): Answer<200 | 'wrong_state' | 'not_found'> {
  switch (answer.outcome) {
    case 'done':
    case 'in_repair':
      return json(200, answer.outcome, { ...saleBody(answer.sale), inRepair: answer.outcome === 'in_repair' });
    case 'wrong_state':
      return problem(answer.outcome, { detail: `Cannot ${verb} a sale that is ${answer.sale.state}.` });
    case 'not_found':
      return problem(answer.outcome);
    default:
      return assertNever(answer);
  }
}

export function saleBody({
  opensAtMs,
  closesAtMs,
  warmBeforeMs,
  paymentWindowMs,
  retiredAtMs,
  ...sale
}: Sale): SaleBody {
  const warmBefore = durationTextOrNull(warmBeforeMs);
  const paymentWindow = durationTextOrNull(paymentWindowMs);
  const retiredAt = retiredAtMs === null ? null : isoTime(retiredAtMs);
  return { ...sale, opensAt: isoTime(opensAtMs), closesAt: isoTime(closesAtMs), warmBefore, paymentWindow, retiredAt };
}

export const plannedBody = ({ sale, status, missing, warmsAtMs }: PlannedSale): PlannedBody => ({
  sale: saleBody(sale),
  status,
  missing,
  warmsAt: isoTimeOrNull(warmsAtMs),
});
