import { createHash } from 'node:crypto';
import { z } from 'zod';
import { isoTime, queryWord, saleParams } from '../../contract/fields.js';
import { salePage, type Proof } from '../../contract/sales.js';
import { durationTextOrNull } from '../../core/duration.js';
import type { GetSaleAnswer, SaleView } from '../../sales/get-sale.js';
import { pollAfterMs } from '../../sales/poll-after.js';
import type { Body } from '../../admission/degrade/degraded-reads.js';
import { json, type Answer } from '../answer.js';
import { defineRoute, type RouteServices } from '../route.js';
import { answerRead, readable } from './degraded-read.js';

/**
 * Shared caches keep an answer for a second, and for one second more while they fetch the next. It contains nothing
 * personal. A cache that counts in whole seconds may still serve it three seconds after it was made.
 */
export const SALE_CACHING = 'public, max-age=1, stale-while-revalidate=1';

/** Serves the public data of a sale. All requests within a second get the same bytes. */
export const readSalePage = defineRoute({
  method: 'get',
  path: '/v1/sales/{saleId}',
  label: 'sale',
  operationId: 'readSalePage',
  summary: 'Returns the public page data of a sale. Caches may keep it for a second, except with `fresh`.',
  access: 'anyone',
  params: saleParams,
  query: z.object({
    fresh: queryWord(['1'])
      .optional()
      .meta({ description: '1: an answer that no cache keeps, with the current server time' }),
  }),
  headers: [{ name: 'If-None-Match', required: false, description: 'the `ETag` of an answer', schema: z.string() }],
  answers: {
    200: { ...readable('the sale', salePage), headers: { ETag: 'changes with the answer; missing with `fresh`' } },
    204: { description: 'no data now, because of overload' },
    304: { description: 'the answer still has the `ETag` in `If-None-Match`' },
  },
  problems: ['not_found', 'loading'],
  async handle({ req, params: { saleId }, query }, services) {
    const isFresh = query.fresh !== undefined;
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
        ...(isFresh ? {} : { whole: (body) => sharedAnswer(body, req.headers['if-none-match']) }),
        async source() {
          const answer = await services.getSale.get(saleId, isFresh || services.degrade.isOn); // a copy tells its age
          outcome = answer.outcome;
          return answer.outcome === 'found' ? bodyOf(answer.view, proofsOf(saleId, services)) : null;
        },
      },
      services,
    );
  },
});

/** Bodies by their view, which all requests within a second share, and answers by their body. */
const bodies = new WeakMap<SaleView, Body & { readonly asksFor: readonly Proof[] }>();
const answers = new WeakMap<Body, SharedAnswer>();

interface SharedAnswer {
  readonly etag: string;
  readonly whole: Answer<200>;
  readonly unchanged: Answer<304>;
}

function sharedAnswer(body: Body, known: string | undefined): Answer<200 | 304> {
  let made = answers.get(body);
  if (made === undefined) answers.set(body, (made = newSharedAnswer(body)));
  return known === '*' || known?.includes(made.etag) === true ? made.unchanged : made.whole;
}

function newSharedAnswer(body: Body): SharedAnswer {
  const etag = `"${createHash('sha256').update(JSON.stringify(body)).digest('base64url').slice(0, 22)}"`;
  const headers = ['Cache-Control', SALE_CACHING, 'ETag', etag];
  const unchanged = { status: 304, word: 'unchanged', headers, body: '', encoding: 'latin1' } as const;
  return { etag, whole: json(200, 'found', body, headers), unchanged };
}

function bodyOf(view: SaleView, asksFor: readonly Proof[]): Body {
  const known = bodies.get(view);
  if (known !== undefined && String(known.asksFor) === String(asksFor)) return known;
  const { opensAtMs, closesAtMs, nowMs, paymentWindowMs, ...item } = view;
  const times = { opensAt: isoTime(opensAtMs), closesAt: isoTime(closesAtMs), serverTime: isoTime(nowMs) };
  const paymentWindow = durationTextOrNull(paymentWindowMs);
  const body = { ...item, paymentWindow, asksFor, ...times, pollAfterMs: pollAfterMs(view) };
  bodies.set(view, body);
  return body;
}

/** Returns the proofs that the current rules require, so that a page need not learn them from a refusal. */
function proofsOf(saleId: string, { signatures, tokens, rooms }: RouteServices): Proof[] {
  const proofs: Proof[] = [];
  if (signatures.areNeeded(saleId)) proofs.push('signature');
  if (tokens.areIssued(saleId)) proofs.push('purchase_token');
  if (rooms.isFor(saleId)) proofs.push('queue_pass');
  return proofs;
}
