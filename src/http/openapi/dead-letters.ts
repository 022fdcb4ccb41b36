import { DEAD_LETTER_REASONS, DEAD_LETTER_STATES } from '../../core/ports/dead-letter-repository.js';
import type { ProblemCode } from '../problem.js';
import { ADMIN, BEARER, filterBy, id, json, object, orNull, parameter, problems, ref, text, time } from './parts.js';

const DEAD_LETTER_ID = parameter('path', 'letterId', { type: 'string', pattern: '^[1-9][0-9]{0,17}$' });

const deadLetters = {
  get: {
    operationId: 'listDeadLetters',
    summary: 'Dead letters, oldest first; `next` goes into `after` for the next page.',
    security: BEARER,
    parameters: [
      ...[filterBy('group', text), filterBy('saleId', text), filterBy('key', id)],
      ...[filterBy('reason', { enum: DEAD_LETTER_REASONS }), filterBy('state', { enum: DEAD_LETTER_STATES })],
      ...[filterBy('since', time), filterBy('until', time), filterBy('after', text)],
      filterBy('limit', { type: 'integer', minimum: 1, maximum: 200, default: 50 }),
    ],
    responses: {
      200: json('a page', object({ deadLetters: { type: 'array', items: ref('DeadLetter') }, next: orNull(text) })),
      ...problems(...ADMIN),
    },
  },
};

const deadLetterMove = (verb: string, summary: string, ...more: ProblemCode[]): object => ({
  post: {
    operationId: `${verb}DeadLetter`,
    summary: `${summary}; safe to repeat`,
    security: BEARER,
    parameters: [DEAD_LETTER_ID],
    responses: {
      200: json('done, now or before', object({ outcome: text, deadLetter: ref('DeadLetterWithBody') })),
      ...(verb === 'replay'
        ? { 202: json('published, not recorded yet', object({ outcome: text, deadLetter: ref('DeadLetterWithBody') })) }
        : {}),
      ...problems(...ADMIN, 'dead_letter_not_found', 'wrong_state', ...more),
    },
  },
});

export const deadLetterPaths = {
  '/admin/v1/dead-letters': deadLetters,
  '/admin/v1/dead-letters/{letterId}': {
    get: {
      operationId: 'readDeadLetter',
      security: BEARER,
      parameters: [DEAD_LETTER_ID],
      responses: {
        200: json('the letter with its body', ref('DeadLetterWithBody')),
        ...problems(...ADMIN, 'dead_letter_not_found'),
      },
    },
  },
  '/admin/v1/dead-letters/{letterId}/replay': deadLetterMove(
    'replay',
    'send the batch to the workers again and follow it to its rows',
    'not_replayable',
  ),
  '/admin/v1/dead-letters/{letterId}/discard': deadLetterMove(
    'discard',
    'give the batch up: failed rows, units go back',
  ),
};
