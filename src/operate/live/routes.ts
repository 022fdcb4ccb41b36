import { once } from 'node:events';
import { filterObject, queryTime, saleParams } from '../../contract/fields.js';
import { saleSeconds as saleSecondsSchema } from '../../contract/sales.js';
import { OperationalError } from '../../core/errors.js';
import type { AnswerCounts } from '../../core/ports/answer-history.js';
import { json, nameTrace, problem, startPoll } from '../../http/answer.js';
import { answerStreamHead, EventStream, isStillAllowed } from '../../http/event-stream.js';
import { operatorRoute, type RouteServices } from '../../http/route.js';
import { acceptedOf, answersAt, refusalsOf } from './live-sales.js';
import type { LiveServices } from './services.js';

const TOO_MANY = 'Too many consoles are connected to this api. Close some, or use another api.';

export const followLive = operatorRoute({
  method: 'get',
  path: '/admin/v1/live',
  operationId: 'followLive',
  summary: 'Streams active sales, running programs and current problems, one event per second.',
  access: 'viewer',
  answers: {
    200: {
      description:
        'event `snapshot`; data: JSON with `atMs`, `sales` (at most 20, the busiest first), `moreSales`, `programs`,' +
        ' `conditions` (active alerts) and `missing` (data that could not be read). Figures cover all apis. The stream ends' +
        ' after some minutes, with `retry`.',
      type: 'text/event-stream',
    },
  },
  problems: ['overloaded'],
  async handle(call, services: RouteServices & LiveServices) {
    const { live, lifecycle, streamTimes } = services;
    const { req, res, counter } = call;
    nameTrace(call);
    if (req.method === 'HEAD') {
      counter.count('stream');
      answerStreamHead(res);
      return null;
    }
    if (live.isFull) return problem('overloaded', { detail: TOO_MANY });
    counter.count('stream');
    const poll = startPoll(res, lifecycle);
    const stream = new EventStream(req, res, streamTimes, isStillAllowed(call, services), () => poll.abort());
    const leave = live.follow((event) => stream.sendEncoded(event));
    if (!poll.signal.aborted) await once(poll.signal, 'abort');
    leave();
    stream.end();
    return null;
  },
});

const SECOND_MS = 1000;
const SECONDS_MAX = 3600;

export const readSaleSeconds = operatorRoute({
  method: 'get',
  path: '/admin/v1/sales/{saleId}/seconds',
  operationId: 'readSaleSeconds',
  summary:
    'Returns accepted purchases, refusals and written orders of a sale per second, over all apis, for at most an hour.',
  access: 'viewer',
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
  async handle({ params: { saleId }, query }, { sales, saleSeconds, clock }: RouteServices & LiveServices) {
    const sale = await sales.show(saleId);
    if (sale === null) return problem('not_found');
    const nowMs = clock.nowMs();
    const endMs = query.to ?? Math.min(nowMs, sale.closesAtMs + AFTER_END_MS);
    const fromMs = wholeSecond(query.from ?? endMs - SECONDS_MAX * SECOND_MS);
    const toMs = Math.min(wholeSecond(endMs + SECOND_MS - 1), fromMs + SECONDS_MAX * SECOND_MS);
    if (toMs <= fromMs) return problem('bad_request', { detail: 'to must be later than from.' });
    const { seconds: landed, readToMs } = await saleSeconds.landed.bySecond(saleId, fromMs, toMs);
    const heard = await saleSeconds.answers.read(saleId, fromMs, readToMs).catch((error: unknown) => {
      if (error instanceof OperationalError) return null; // the figures of MySQL alone are worth an answer
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
