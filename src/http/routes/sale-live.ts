import { z } from 'zod';
import { bucketsOfSale, repairedSale, saleSeconds as saleSecondsSchema } from '../../contract/sales.js';
import { filterObject, queryTime, saleParams } from '../../contract/fields.js';
import { assertNever, OperationalError } from '../../core/errors.js';
import type { AnswerCounts } from '../../core/ports/answer-history.js';
import type { OrderedRepair } from '../../recovery/repair/repair-jobs.js';
import { acceptedOf, answersAt, refusalsOf } from '../../operate/live/live-sales.js';
import { json, problem, type Answer } from '../answer.js';
import { defineRoute, optionalJsonBody } from '../route.js';

/** A sale as operators watch it: its rush per second, its buckets, and its repair. */

const SECOND_MS = 1000;
/** Maximum number of seconds in one answer. */
const SECONDS_MAX = 3600;

export const readSaleSeconds = defineRoute({
  method: 'get',
  path: '/admin/v1/sales/{saleId}/seconds',
  label: 'admin',
  operationId: 'readSaleSeconds',
  summary:
    'Returns accepted purchases, refusals and written orders of a sale per second, over all apis, for at most an hour.',
  access: 'viewer',
  endpoint: null,
  params: saleParams,
  query: filterObject({ from: queryTime.optional(), to: queryTime.optional() }),
  answers: {
    200: {
      description:
        'seconds with activity, in order. `won` and `refused` are null for answers older than an hour, or if an api may have' +
        ' counted them with other sales: it counts 20 sales separately. `toMs` is the end of the returned data, which may be' +
        ' earlier than requested. Defaults to the last hour of the sale.',
      schema: saleSecondsSchema,
    },
  },
  problems: ['not_found'],
  async handle({ params: { saleId }, query }, { sales, saleSeconds, clock }) {
    const sale = await sales.show(saleId);
    if (sale === null) return problem('not_found');
    const nowMs = clock.nowMs();
    const endMs = query.to ?? Math.min(nowMs, sale.closesAtMs + AFTER_END_MS);
    const fromMs = wholeSecond(query.from ?? endMs - SECONDS_MAX * SECOND_MS);
    const toMs = Math.min(wholeSecond(endMs + SECOND_MS - 1), fromMs + SECONDS_MAX * SECOND_MS);
    if (toMs <= fromMs) return problem('bad_request', { detail: 'to must be later than from.' });
    const { seconds: landed, readToMs } = await saleSeconds.landed.bySecond(saleId, fromMs, toMs);
    const heard = await saleSeconds.answers.read(saleId, fromMs, readToMs).catch((error: unknown) => {
      if (error instanceof OperationalError) return null; // the figures of MySQL are worth an answer
      throw error;
    });
    const rememberedFromMs = heard === null ? Infinity : nowMs - saleSeconds.keptMs;
    const instants = [...new Set([...landed.keys(), ...(heard?.keys() ?? [])])].sort((one, other) => one - other);
    const seconds = instants.map((atMs) => ({
      atMs,
      landed: landed.get(atMs) ?? 0,
      ...ratesOf(atMs < rememberedFromMs && !heard?.has(atMs) ? null : answersAt(heard, atMs)),
    }));
    return json(200, 'found', { saleId, fromMs, toMs: readToMs, seconds });
  },
});

/** Purchases accepted in the last second of a sale reach MySQL a little later. */
const AFTER_END_MS = 60_000;

const wholeSecond = (ms: number): number => Math.floor(ms / SECOND_MS) * SECOND_MS;

const ratesOf = (counts: AnswerCounts | null): { readonly won: number | null; readonly refused: AnswerCounts | null } =>
  counts === null ? { won: null, refused: null } : { won: acceptedOf(counts), refused: refusalsOf(counts) };

export const readBuckets = defineRoute({
  method: 'get',
  path: '/admin/v1/sales/{saleId}/buckets',
  label: 'admin',
  operationId: 'readBuckets',
  summary: 'Lists the buckets of a sale in Redis, with an error for each whose server does not answer.',
  access: 'viewer',
  endpoint: null,
  params: saleParams,
  answers: {
    200: {
      description: 'all buckets; null means not loaded or unknown',
      schema: bucketsOfSale,
    },
  },
  problems: ['not_found'],
  async handle({ params: { saleId } }, { sales, bucketsOf }) {
    const sale = await sales.show(saleId);
    return sale === null ? problem('not_found') : json(200, 'found', { saleId, buckets: await bucketsOf(sale) });
  },
});

export const repairSale = defineRoute({
  method: 'post',
  path: '/admin/v1/sales/{saleId}/repair',
  label: 'admin',
  operationId: 'repairSale',
  summary:
    'Rebuilds a sale in Redis from MySQL, as the keeper does when needed. `force` rebuilds it in any case. Purchases are refused' +
    ' until it ends, which takes seconds, or longer with very many orders.',
  access: 'operator',
  endpoint: null,
  params: saleParams,
  body: optionalJsonBody(z.strictObject({ force: z.boolean().optional() }), {}),
  answers: {
    200: {
      description: '`not_needed`: all buckets were intact, and nothing was changed',
      schema: repairedSale,
    },
  },
  problems: ['not_found', 'wrong_state', 'repairing'],
  async handle({ params: { saleId }, body: { force = false }, userId: actor }, { repair }) {
    return repairAnswer(await repair(saleId, { actor }, { force }));
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
