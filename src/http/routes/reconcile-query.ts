import { z } from 'zod';
import { isSaleId } from '../../core/ids.js';
import { COMPENSATED_KINDS } from '../../core/sale-finding.js';
import { JOB_STATES } from '../../core/ports/compensation-repository.js';
import type { FieldError } from '../../core/field-errors.js';

const ROWS_LISTED_DEFAULT = 50;
const ROWS_LISTED_MAX = 200;

/** Numbers of jobs: BIGINT in MySQL, a decimal string outside of it. */
const JOB_ID = /^[1-9][0-9]{0,17}$/;
export const isJobId = (text: string): boolean => JOB_ID.test(text);

const oneOf = (words: readonly string[]): string => `must be one of ${words.join(', ')}`;
const rows = `must be a whole number from 1 to ${ROWS_LISTED_MAX}`;
const limit = z
  .string(rows)
  .regex(/^[0-9]{1,3}$/, rows)
  .transform(Number)
  .pipe(z.number().min(1, rows).max(ROWS_LISTED_MAX, rows))
  .default(ROWS_LISTED_DEFAULT);
const saleId = z.string('must be given once').refine(isSaleId, 'must be a whole number').optional();

/** Everything stands in the address as text. An array (the same name twice) is no text. */
export const RUN_QUERY = z.strictObject({ apply: z.enum(['true', 'false'], oneOf(['true', 'false'])).optional() });
export const RUNS_QUERY = z.strictObject({ saleId, limit });
export const JOBS_QUERY = z.strictObject({
  ...{ saleId, limit },
  state: z.enum(JOB_STATES, oneOf(JOB_STATES)).optional(),
  kind: z.enum(COMPENSATED_KINDS, oneOf(COMPENSATED_KINDS)).optional(),
  after: z.string('must be given once').regex(JOB_ID, 'must be the number of a job').optional(),
});

/** What the query says, or what is wrong with it, field by field. */
export function readQuery<T>(schema: z.ZodType<T>, raw: unknown): { readonly query: T } | readonly FieldError[] {
  const read = schema.safeParse(raw);
  if (read.success) return { query: read.data };
  return read.error.issues.flatMap((issue) =>
    issue.code === 'unrecognized_keys'
      ? issue.keys.map((field) => ({ field: field.slice(0, 40), message: 'is not known here' }))
      : [{ field: issue.path.join('.'), message: issue.message }],
  );
}
