import { z } from 'zod';
import {
  deadLetterPage,
  deadLetterWithOrders,
  movedDeadLetter,
  type DeadLetter,
  type DeadLetterWithBody,
  type MovedDeadLetter,
  type PurchaseOfBatch,
} from '../../contract/dead-letters.js';
import {
  filterObject,
  id,
  isoTime,
  isoTimeOrNull,
  limit,
  nextOf,
  queryText,
  queryTime,
  queryWord,
  rowId,
  saleId,
} from '../../contract/fields.js';
import { decodeBatch, sealBatch } from '../../core/batch.js';
import { assertNever } from '../../core/errors.js';
import { type Order } from '../../core/order.js';
import {
  DEAD_LETTER_REASONS,
  DEAD_LETTER_STATES,
  type DeadLetterFilter,
  type DeadLetterState,
  type DeadLetterSummary,
  type StoredDeadLetter,
} from '../../core/ports/dead-letter-repository.js';
import { json, problem, type Answer } from '../answer.js';
import { defineRoute, type RouteServices } from '../route.js';
import { withoutUndefined } from '../../core/without-undefined.js';

/**
 * How long the api follows a replay before it answers that the replay is not finished. Use `seckill dlq` for many dead
 * letters.
 */
export const REPLAY_WAIT_MS = 10_000;

const params = z.object({ deadLetterId: rowId });

/** The filters for dead letters. */
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

export const listDeadLetters = defineRoute({
  method: 'get',
  path: '/admin/v1/dead-letters',
  label: 'admin',
  operationId: 'listDeadLetters',
  summary: 'Lists dead letters, oldest first. Pass `next` as `after` to get the next page.',
  access: 'viewer',
  endpoint: null,
  query: filterObject({
    ...deadLetterFilter,
    state: queryWord(DEAD_LETTER_STATES).optional(),
    after: rowId.optional(),
    limit,
  }),
  answers: {
    200: {
      description: 'a page',
      schema: deadLetterPage,
    },
  },
  problems: [],
  async handle({ query }, { deadLetters }) {
    const { state, after: afterId, limit: max, ...names } = query;
    const filter = { ...filterOf(names), ...withoutUndefined({ state }) };
    const found = await deadLetters.list(filter, { max, ...withoutUndefined({ afterId }) });
    return json(200, 'found', { deadLetters: found.map(summaryBody), next: nextOf(found, max, 'deadLetterId') });
  },
});

export const readDeadLetter = defineRoute({
  method: 'get',
  path: '/admin/v1/dead-letters/{deadLetterId}',
  label: 'admin',
  operationId: 'readDeadLetter',
  summary: 'Returns a dead letter with its body and the order of each purchase.',
  access: 'viewer',
  endpoint: null,
  params,
  answers: {
    200: {
      description: '`orders` is null if the body is not a batch or has no valid signature',
      schema: deadLetterWithOrders,
    },
  },
  problems: ['dead_letter_not_found'],
  async handle({ params: { deadLetterId } }, { deadLetters }) {
    const found = await deadLetters.find(deadLetterId);
    if (found === null) return problem('dead_letter_not_found');
    return json(200, 'found', { ...deadLetterBody(found), orders: await ordersBody(found, deadLetters) });
  },
});

export const replayDeadLetter = defineRoute({
  method: 'post',
  path: '/admin/v1/dead-letters/{deadLetterId}/replay',
  label: 'admin',
  operationId: 'replayDeadLetter',
  summary: 'Sends the batch to the workers again and waits for its orders. Safe to repeat.',
  access: 'operator',
  endpoint: null,
  params,
  answers: {
    200: { description: 'done, by this request or an earlier one', schema: movedDeadLetter },
    202: { description: 'published, but not recorded yet', schema: movedDeadLetter },
  },
  problems: ['dead_letter_not_found', 'wrong_state', 'not_replayable'],
  async handle({ params: { deadLetterId }, userId: actor }, services) {
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

export const discardDeadLetter = defineRoute({
  method: 'post',
  path: '/admin/v1/dead-letters/{deadLetterId}/discard',
  label: 'admin',
  operationId: 'discardDeadLetter',
  summary: 'Gives up the batch: writes its orders as failed and returns its units. Safe to repeat.',
  access: 'admin',
  endpoint: null,
  params,
  answers: { 200: { description: 'done, by this request or an earlier one', schema: movedDeadLetter } },
  problems: ['dead_letter_not_found', 'wrong_state'],
  async handle({ params: { deadLetterId }, userId: actor }, services) {
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
  { deadLetters }: RouteServices,
): Promise<Answer<S | 'dead_letter_not_found'>> {
  const found = await deadLetters.find(deadLetterId);
  if (found === null) return problem('dead_letter_not_found');
  return json(status, outcome, { outcome, deadLetter: deadLetterBody(found) });
}

const closedAnswer = (state: DeadLetterState): Answer<'wrong_state'> =>
  problem('wrong_state', { detail: `The dead letter is ${state}, and that is final.` });

/** Formats a dead letter for programs: times in ISO 8601. */
export function summaryBody({ parkedAtMs, replayStartedAtMs, ...summary }: DeadLetterSummary): DeadLetter {
  return { ...summary, parkedAt: isoTime(parkedAtMs), replayStartedAt: isoTimeOrNull(replayStartedAtMs) };
}

/**
 * Formats a dead letter with its body, both raw and decoded if it is a batch. The decoded form leaves out unknown fields.
 */
export function deadLetterBody({ body, ...summary }: StoredDeadLetter): DeadLetterWithBody {
  const decoded = decodeBatch(body);
  const batch =
    decoded.outcome === 'decoded' ? (JSON.parse(sealBatch(decoded.batch).body) as Record<string, unknown>) : null;
  return { ...summaryBody(summary), batch, body };
}

/** Returns the present state of each purchase in the batch. */
async function ordersBody(
  { body, reason }: StoredDeadLetter,
  deadLetters: RouteServices['deadLetters'],
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
