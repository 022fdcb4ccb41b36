import { z } from 'zod';
import type { FieldError } from '../../core/field-errors.js';
import { fieldErrors, queryLimit } from './query-fields.js';

/** What lists of the largest size take, and no more. */
export const RULES_BYTES_MAX = 2 * 1024 * 1024;
const HISTORY_MAX = 200;

/** As `show` gives it: so what was read can be changed and sent back. */
export interface RulesDocument {
  /** The version that these rules were made from. */
  readonly version?: number | undefined;
  /** Nobody has looked into it. */
  readonly rules: unknown;
}

const document = z.strictObject({
  version: z.number('must be a whole number').int('must be a whole number').min(0, 'must not be negative').optional(),
  rules: z.unknown().refine((value) => value !== undefined, 'must be there'),
});

/** Everything stands in the address as text. */
export const HISTORY_QUERY = z.strictObject({ limit: queryLimit(HISTORY_MAX).optional() });

/** Number of a version: it fits into its column. */
export const isRulesVersion = (text: string): boolean => /^(0|[1-9]\d{0,8})$/.test(text);

/** Reads `{"version": …, "rules": {…}}`, or says what is wrong with it. */
export function readRulesDocument(text: string): RulesDocument | readonly FieldError[] {
  const read = document.safeParse(parsed(text), { error: () => 'must be {"version": …, "rules": {…}}' });
  return read.success ? read.data : fieldErrors(read.error);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
