import { z } from 'zod';
import { decodeBatch, sealBatch } from '../../core/batch.js';
import { assertNever } from '../../core/errors.js';
import {
  DEAD_LETTER_REASONS,
  DEAD_LETTER_STATES,
  type DeadLetterState,
  type DeadLetterSummary,
  type StoredDeadLetter,
} from '../../core/ports/dead-letter-repository.js';
import { json, problem, type Answer } from '../answer.js';
import { defineRoute, type RouteServices } from '../route.js';
import {
  count,
  id,
  isoTime,
  isoTimeOrNull,
  limit,
  queryText,
  queryTime,
  queryWord,
  rowId,
  saleId,
  text,
  time,
} from '../schemas.js';
import { withoutUndefined } from '../../core/without-undefined.js';

/** How long a replay is followed before the answer says that it is not finished; many are a task for `seckill dlq`. */
const REPLAY_WAIT_MS = 10_000;

const params = z.object({ deadLetterId: rowId });

const summaryFields = {
  deadLetterId: text,
  messageId: text,
  group: text,
  originTopic: text,
  saleId: text.nullable(),
  batchId: text.nullable(),
  reason: z.enum(DEAD_LETTER_REASONS),
  detail: text,
  attempts: count,
  state: z.enum(DEAD_LETTER_STATES),
  parkedAt: time,
  replays: count,
  replayStartedAt: time.nullable(),
  note: text.nullable(),
};
const deadLetter = z
  .object({ ...summaryFields, batch: z.looseObject({}).nullable(), body: text })
  .meta({ id: 'DeadLetterWithBody' });

export const listDeadLetters = defineRoute({
  method: 'get',
  path: '/admin/v1/dead-letters',
  label: 'admin',
  operationId: 'listDeadLetters',
  summary: 'Dead letters, oldest first; `next` goes into `after` for the next page.',
  access: 'viewer',
  endpoint: null,
  query: z.strictObject({
    group: queryText(128).optional(),
    saleId: saleId.optional(),
    key: id.optional(),
    reason: queryWord(DEAD_LETTER_REASONS).optional(),
    state: queryWord(DEAD_LETTER_STATES).optional(),
    since: queryTime.optional(),
    until: queryTime.optional(),
    after: rowId.optional(),
    limit,
  }),
  answers: {
    200: {
      description: 'a page',
      schema: z.object({
        deadLetters: z.array(z.object(summaryFields).meta({ id: 'DeadLetter' })),
        next: text.nullable(),
      }),
    },
  },
  problems: [],
  async handle({ query }, { deadLetters }) {
    const { since: sinceMs, until: untilMs, after: afterId, limit: max, ...filter } = query;
    const found = await deadLetters.list(withoutUndefined({ ...filter, sinceMs, untilMs }), {
      max,
      ...withoutUndefined({ afterId }),
    });
    const next = found.length < max ? null : (found.at(-1)?.deadLetterId ?? null);
    return json(200, 'found', { deadLetters: found.map(summaryBody), next });
  },
});

export const readDeadLetter = defineRoute({
  method: 'get',
  path: '/admin/v1/dead-letters/{deadLetterId}',
  label: 'admin',
  operationId: 'readDeadLetter',
  summary: 'A dead letter with its body.',
  access: 'viewer',
  endpoint: null,
  params,
  answers: { 200: { description: 'the dead letter', schema: deadLetter } },
  problems: ['dead_letter_not_found'],
  async handle({ params: { deadLetterId } }, { deadLetters }) {
    const found = await deadLetters.find(deadLetterId);
    return found === null ? problem('dead_letter_not_found') : json(200, 'found', deadLetterBody(found));
  },
});

const moved = z.object({
  outcome: z.enum(['replayed', 'already_recorded', 'unfinished', 'discarded', 'already_closed']),
  deadLetter,
});

export const replayDeadLetter = defineRoute({
  method: 'post',
  path: '/admin/v1/dead-letters/{deadLetterId}/replay',
  label: 'admin',
  operationId: 'replayDeadLetter',
  summary: 'Send the batch to the workers again and follow it to its rows. Safe to repeat.',
  access: 'operator',
  endpoint: null,
  params,
  answers: {
    200: { description: 'done, now or before', schema: moved },
    202: { description: 'published, not recorded yet', schema: moved },
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
        return problem('not_replayable', { detail: `This dead letter: ${answer.note}.` });
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
  summary: 'Give the batch up: its rows are written as failed, its units go back. Safe to repeat.',
  access: 'admin',
  endpoint: null,
  params,
  answers: { 200: { description: 'done, now or before', schema: moved } },
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
        return problem('unavailable', { detail: 'Others write the same rows. Try again.' });
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
  outcome: z.infer<typeof moved>['outcome'],
  { deadLetters }: RouteServices,
): Promise<Answer<S | 'dead_letter_not_found'>> {
  const found = await deadLetters.find(deadLetterId);
  if (found === null) return problem('dead_letter_not_found');
  return json(status, outcome, { outcome, deadLetter: deadLetterBody(found) });
}

const closedAnswer = (state: DeadLetterState): Answer<'wrong_state'> =>
  problem('wrong_state', { detail: `The dead letter is ${state}, and that is final.` });

/** A dead letter as a program reads it: times in ISO 8601. */
export function summaryBody({ parkedAtMs, replayStartedAtMs, ...summary }: DeadLetterSummary): object {
  return { ...summary, parkedAt: isoTime(parkedAtMs), replayStartedAt: isoTimeOrNull(replayStartedAtMs) };
}

/** The same with its body: as it is, and decoded where it is a batch, without fields that no batch has. */
export function deadLetterBody({ body, ...summary }: StoredDeadLetter): object {
  const decoded = decodeBatch(body);
  const batch = decoded.outcome === 'decoded' ? (JSON.parse(sealBatch(decoded.batch).body) as object) : null;
  return { ...summaryBody(summary), batch, body };
}
