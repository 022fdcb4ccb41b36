import { z } from 'zod';
import {
  deadLetterPage,
  deadLetterSummary,
  deadLetterWithOrders,
  movedDeadLetter,
  type DeadLetter,
  type MovedDeadLetter,
  type PurchaseOfBatch,
} from '../../contract/dead-letters.js';
import {
  filterObject,
  id,
  limit,
  nextOf,
  queryText,
  queryTime,
  queryWhole,
  queryWord,
  rowId,
  saleId,
} from '../../contract/fields.js';
import { decodeBatch } from '../../core/batch.js';
import { assertNever } from '../../core/errors.js';
import { type Order } from '../../core/order.js';
import { DEAD_LETTER_REASONS, DEAD_LETTER_STATES, type DeadLetterState } from '../../core/ports/dead-letters.js';
import { json, problem, type Answer } from '../../http/answer.js';
import { operatorRoute, type RouteServices } from '../../http/route.js';
import { withoutUndefined } from '../../core/without-undefined.js';
import { EXPORT_FORMATS, EXPORT_MAX, exportLine, headingOf, type ExportFormat } from '../../http/export-lines.js';
import { EXPORT_ANSWER, sendExport } from '../../http/send-export.js';
import { deadLetterBody, summaryBody, type DeadLetterFilter, type StoredDeadLetter } from './dead-letter-store.js';
import type { DeadLetterServices } from './services.js';

/** After this wait, a replay is answered as unfinished. `seckill dlq` replays many dead letters. */
export const REPLAY_WAIT_MS = 10_000;

const params = z.object({ deadLetterId: rowId });

export const deadLetterFilter = {
  group: queryText(128).optional(),
  saleId: saleId.optional(),
  topic: queryText(128).optional().meta({ description: 'topic of the original message' }),
  key: id.optional(),
  reason: queryWord(DEAD_LETTER_REASONS).optional(),
  text: queryText(200).optional().meta({ description: 'text in `detail`' }),
  since: queryTime.optional(),
  until: queryTime.optional(),
};
type FilterQuery = z.output<z.ZodObject<typeof deadLetterFilter>>;

export const filterOf = ({
  topic: originTopic,
  since: sinceMs,
  until: untilMs,
  ...names
}: FilterQuery): DeadLetterFilter => withoutUndefined({ ...names, originTopic, sinceMs, untilMs });

export const listDeadLetters = operatorRoute({
  method: 'get',
  path: '/admin/v1/dead-letters',
  operationId: 'listDeadLetters',
  summary: 'Lists dead letters, oldest first. Pass `next` as `after` to get the next page.',
  access: 'viewer',
  query: filterObject({
    ...deadLetterFilter,
    state: queryWord(DEAD_LETTER_STATES).optional(),
    after: rowId.optional(),
    limit,
  }),
  answers: { 200: { description: 'a page', schema: deadLetterPage } },
  async handle({ query }, { deadLetters }: DeadLetterServices) {
    const { state, after: afterId, limit: max, ...names } = query;
    const filter = { ...filterOf(names), ...withoutUndefined({ state }) };
    const found = await deadLetters.list(filter, { max, ...withoutUndefined({ afterId }) });
    return json(200, 'found', { deadLetters: found.map(summaryBody), next: nextOf(found, max, 'deadLetterId') });
  },
});

export const readDeadLetter = operatorRoute({
  method: 'get',
  path: '/admin/v1/dead-letters/{deadLetterId}',
  operationId: 'readDeadLetter',
  summary: 'Returns a dead letter with its body and the order of each purchase.',
  access: 'viewer',
  params,
  answers: {
    200: {
      description: '`orders` is null if the body is not a batch or has no valid signature',
      schema: deadLetterWithOrders,
    },
  },
  problems: ['dead_letter_not_found'],
  async handle({ params: { deadLetterId } }, { deadLetters }: DeadLetterServices) {
    const found = await deadLetters.find(deadLetterId);
    if (found === null) return problem('dead_letter_not_found');
    return json(200, 'found', { ...deadLetterBody(found), orders: await ordersBody(found, deadLetters) });
  },
});

export const replayDeadLetter = operatorRoute({
  method: 'post',
  path: '/admin/v1/dead-letters/{deadLetterId}/replay',
  operationId: 'replayDeadLetter',
  summary: 'Sends the batch to the workers again and waits for its orders. Safe to repeat.',
  access: 'operator',
  params,
  answers: {
    200: { description: 'done, by this request or an earlier one', schema: movedDeadLetter },
    202: { description: 'published, but not recorded yet', schema: movedDeadLetter },
  },
  problems: ['dead_letter_not_found', 'wrong_state', 'not_replayable'],
  async handle({ params: { deadLetterId }, userId: actor }, services: DeadLetterServices) {
    const answer = await services.deadLetters.replay(deadLetterId, { actor, waitMs: REPLAY_WAIT_MS });
    switch (answer.outcome) {
      case 'replayed':
      case 'already_recorded':
        return movedAnswer(200, deadLetterId, answer.outcome, services);
      case 'unfinished':
        return movedAnswer(202, deadLetterId, answer.outcome, services);
      case 'already_closed':
        if (answer.state !== 'replayed') return closedAnswer(answer.state);
        return movedAnswer(200, deadLetterId, answer.outcome, services); // a repeat
      case 'unreadable':
      case 'not_held':
      case 'forged':
        return problem('not_replayable', { detail: `Dead letter: ${answer.note}.` });
      case 'not_found':
        return problem('dead_letter_not_found');
      default:
        return assertNever(answer);
    }
  },
});

export const discardDeadLetter = operatorRoute({
  method: 'post',
  path: '/admin/v1/dead-letters/{deadLetterId}/discard',
  operationId: 'discardDeadLetter',
  summary: 'Gives up the batch: writes its orders as failed and returns its units. Safe to repeat.',
  access: 'admin',
  params,
  answers: { 200: { description: 'done, by this request or an earlier one', schema: movedDeadLetter } },
  problems: ['dead_letter_not_found', 'wrong_state'],
  async handle({ params: { deadLetterId }, userId: actor }, services: DeadLetterServices) {
    const answer = await services.deadLetters.discard(deadLetterId, actor);
    switch (answer.outcome) {
      case 'discarded':
        return movedAnswer(200, deadLetterId, answer.outcome, services);
      case 'already_closed':
        if (answer.state !== 'discarded') return closedAnswer(answer.state);
        return movedAnswer(200, deadLetterId, answer.outcome, services); // a repeat
      case 'contended':
        return problem('unavailable', { detail: 'Another transaction writes the same rows. Try again.' });
      case 'not_found':
        return problem('dead_letter_not_found');
      default:
        return assertNever(answer);
    }
  },
});

async function movedAnswer<S extends number>(
  status: S,
  deadLetterId: string,
  outcome: MovedDeadLetter['outcome'],
  { deadLetters }: DeadLetterServices,
): Promise<Answer<S | 'dead_letter_not_found'>> {
  const found = await deadLetters.find(deadLetterId);
  if (found === null) return problem('dead_letter_not_found');
  return json(status, outcome, { outcome, deadLetter: deadLetterBody(found) });
}

const closedAnswer = (state: DeadLetterState): Answer<'wrong_state'> =>
  problem('wrong_state', { detail: `The dead letter is ${state}, and that is final.` });

async function ordersBody(
  { body, reason }: StoredDeadLetter,
  deadLetters: DeadLetterServices['deadLetters'],
): Promise<PurchaseOfBatch[] | null> {
  const decoded = reason === 'forged' ? null : decodeBatch(body);
  if (decoded?.outcome !== 'decoded') return null;
  const orders = await deadLetters.ordersOf(decoded.batch);
  return decoded.batch.purchases.map(({ userId, requestId, quantity }, index) => {
    const order = orders[index] ?? null;
    return { userId, requestId, quantity, order: order === null ? null : rowBody(order) };
  });
}

const rowBody = ({ orderId, batchId, quantity, state, reason }: Order): PurchaseOfBatch['order'] => ({
  orderId,
  batchId,
  quantity,
  state,
  reason,
});

/** The columns that people read first. The other fields follow in the order of the contract, with the body last. */
const FIRST_COLUMNS = [
  'deadLetterId',
  'parkedAt',
  'state',
  'reason',
  'detail',
  'group',
  'originTopic',
  'saleId',
  'batchId',
] as const satisfies (keyof DeadLetter)[];
const COLUMNS = [...new Set<string>([...FIRST_COLUMNS, ...Object.keys(deadLetterSummary.shape), 'body'])];

/** Few per read, because bodies may be long. */
const PAGE = 20;

/** Yields the oldest first, with bodies. Does not read ahead. @throws OperationalError mysql */
async function* deadLetterPages(
  deadLetters: DeadLetterServices['deadLetters'],
  filter: DeadLetterFilter,
  { format, limit }: { readonly format: ExportFormat; readonly limit: number },
): AsyncGenerator<string> {
  let text = headingOf(COLUMNS, format);
  let lines = 0;
  for await (const { deadLetterId } of deadLetters.matching(filter, limit)) {
    const deadLetter = await deadLetters.find(deadLetterId);
    if (deadLetter !== null) text += exportLine({ ...deadLetterBody(deadLetter) }, COLUMNS, format);
    if (++lines % PAGE > 0) continue;
    yield text;
    text = '';
  }
  yield text;
}

/** Exports the same data as `seckill dlq export`, which prints JSON lines. */
export const exportDeadLetters = operatorRoute({
  method: 'get',
  path: '/admin/v1/dead-letters/export',
  operationId: 'exportDeadLetters',
  summary: 'Exports dead letters with their bodies, oldest first. A response that breaks off is incomplete.',
  access: 'viewer',
  query: filterObject({
    ...deadLetterFilter,
    state: queryWord(DEAD_LETTER_STATES).optional(),
    limit: queryWhole(1, EXPORT_MAX).default(EXPORT_MAX),
    format: queryWord(EXPORT_FORMATS).default('csv'),
  }),
  answers: { 200: EXPORT_ANSWER },
  problems: ['overloaded'],
  async handle(call, services: RouteServices & DeadLetterServices) {
    const { state, limit, format, ...names } = call.query;
    const filter = { ...filterOf(names), ...withoutUndefined({ state }) };
    return sendExport(call, 'dead-letters', deadLetterPages(services.deadLetters, filter, { format, limit }), services);
  },
});
