import { z } from 'zod';
import { isId, isSaleId } from '../../core/ids.js';
import {
  DEAD_LETTER_REASONS,
  DEAD_LETTER_STATES,
  type DeadLetterFilter,
  type DeadLetterPage,
} from '../../core/ports/dead-letter-repository.js';
import type { FieldError } from '../../core/field-errors.js';
import { fieldErrors, queryLimit, queryTime } from './query-fields.js';

const DEAD_LETTERS_LISTED_DEFAULT = 50;
const DEAD_LETTERS_LISTED_MAX = 200;

/** Numbers of letters: BIGINT in MySQL, a decimal string outside of it. */
const DEAD_LETTER_ID = /^[1-9][0-9]{0,17}$/;
export const isDeadLetterId = (text: string): boolean => DEAD_LETTER_ID.test(text);

const oneOf = (words: readonly string[]): string => `must be one of ${words.join(', ')}`;

/** Everything stands in the address as text. An array (the same name twice) is no text. */
const query = z.strictObject({
  group: z.string('must be given once').max(128, 'must have up to 128 characters').optional(),
  saleId: z.string('must be given once').refine(isSaleId, 'must be a whole number').optional(),
  key: z.string('must be given once').refine(isId, 'must be an id').optional(),
  reason: z.enum(DEAD_LETTER_REASONS, oneOf(DEAD_LETTER_REASONS)).optional(),
  state: z.enum(DEAD_LETTER_STATES, oneOf(DEAD_LETTER_STATES)).optional(),
  since: queryTime.optional(),
  until: queryTime.optional(),
  after: z.string('must be given once').regex(DEAD_LETTER_ID, 'must be the number of a letter').optional(),
  limit: queryLimit(DEAD_LETTERS_LISTED_MAX).optional(),
});

export type DeadLetterQuery = { readonly filter: DeadLetterFilter; readonly page: DeadLetterPage };

/** Reads the query of GET /admin/v1/dead-letters, or says what is wrong, field by field. */
export function readDeadLetterQuery(raw: unknown): DeadLetterQuery | readonly FieldError[] {
  const read = query.safeParse(raw);
  if (!read.success) return fieldErrors(read.error);
  const {
    group,
    saleId,
    key,
    reason,
    state,
    since,
    until,
    after,
    limit: max = DEAD_LETTERS_LISTED_DEFAULT,
  } = read.data;
  return {
    filter: {
      ...(group === undefined ? {} : { group }),
      ...(saleId === undefined ? {} : { saleId }),
      ...(key === undefined ? {} : { key }),
      ...(reason === undefined ? {} : { reason }),
      ...(state === undefined ? {} : { state }),
      ...(since === undefined ? {} : { sinceMs: since }),
      ...(until === undefined ? {} : { untilMs: until }),
    },
    page: { max, ...(after === undefined ? {} : { afterId: after }) },
  };
}
