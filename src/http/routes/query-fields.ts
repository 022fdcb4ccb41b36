import { z } from 'zod';
import type { FieldError } from '../../core/field-errors.js';

/** Fields that several queries take. Everything stands in the address as text; an array (a name twice) is no text. */

/** A time as ISO 8601; Unix ms for the one who asks. */
export const queryTime = z.iso
  .datetime({ offset: true, error: 'must be a time such as 2030-01-31T20:00:00Z' })
  .transform((text) => Date.parse(text));

export function queryLimit(max: number) {
  const wrong = `must be a whole number from 1 to ${max}`;
  return z
    .string(wrong)
    .regex(/^[0-9]{1,3}$/, wrong)
    .transform(Number)
    .pipe(z.number().min(1, wrong).max(max, wrong));
}

/** What is wrong with a query, field by field. */
export function fieldErrors({ issues }: z.ZodError): FieldError[] {
  return issues.flatMap((issue) =>
    issue.code === 'unrecognized_keys'
      ? issue.keys.map((field) => ({ field: field.slice(0, 40), message: 'is not known here' }))
      : [{ field: issue.path.join('.'), message: issue.message }],
  );
}

/** The same as one sentence. */
export const wrongFields = (errors: readonly FieldError[]): string =>
  `Wrong: ${errors.map(({ field, message }) => `${field} ${message}`).join('; ')}.`;
