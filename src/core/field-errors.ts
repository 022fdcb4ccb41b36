import { z } from 'zod';

export interface FieldError {
  /** Path such as `rules.limits.0`; `body` for the whole input. */
  readonly field: string;
  /** A sentence with the field and its expected value. */
  readonly message: string;
}

/** Maximum length of a field name in a message, because the sender may have invented the name. */
const FIELD_LENGTH_MAX = 60;

/** Builds `title must have 1 to 200 characters.` */
export const fieldError = (field: string, predicate: string): FieldError => {
  const name = field.slice(0, FIELD_LENGTH_MAX);
  return { field: name, message: `${name} ${predicate}.` };
};

/** Converts zod issues to sentences. The messages of schemas are predicates, such as `must be …`. */
export const fieldErrors = ({ issues }: z.ZodError): FieldError[] =>
  issues.flatMap((issue) => {
    if (issue.code !== 'unrecognized_keys') return fieldError(issue.path.join('.') || 'body', issue.message);
    return issue.keys.map((key) => fieldError([...issue.path, key].join('.'), 'is not a known field'));
  });

export const fieldSentences = (errors: readonly FieldError[]): string => errors.map(({ message }) => message).join(' ');

/** Returns a message, as a predicate, that says what a schema expects. It calls an absent value missing. */
export const must = (expected: string) => (issue: { readonly input?: unknown }) =>
  issue.input === undefined ? `is missing: it must be ${expected}` : `must be ${expected}`;

/** @param expected as for `must` */
export const matching = (expected: string, pattern: RegExp) => {
  const error = must(expected);
  return z.string({ error }).regex(pattern, { error });
};

/** Default messages, as predicates, for `safeParse(value, { error: plainError })`. A schema's own message wins. */
export function plainError(issue: z.core.$ZodRawIssue): string | undefined {
  switch (issue.code) {
    case 'invalid_type':
      return must(KINDS[issue.expected] ?? issue.expected)(issue);
    case 'invalid_value':
      return must(issue.values.length === 1 ? String(issue.values[0]) : `one of ${issue.values.join(', ')}`)(issue);
    case 'too_small':
      return bound(issue.origin, issue.inclusive ? 'at least' : 'more than', Number(issue.minimum));
    case 'too_big':
      return bound(issue.origin, issue.inclusive ? 'at most' : 'less than', Number(issue.maximum));
    case 'invalid_format':
      return issue.pattern === undefined ? `must be a ${issue.format}` : `must match ${issue.pattern}`;
    case 'not_multiple_of':
      return `must be a multiple of ${issue.divisor}`;
    case 'invalid_union':
      return 'matches none of the allowed forms';
    case 'unrecognized_keys': // fieldErrors names each unknown key itself
    case 'invalid_key':
    case 'invalid_element':
    case 'custom':
      return undefined;
  }
}

const KINDS: Readonly<Record<string, string>> = {
  string: 'a text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  object: 'an object',
  record: 'an object',
  array: 'a list',
};

function bound(origin: string, comparison: string, limit: number): string {
  if (origin === 'string') return `must have ${comparison} ${limit} characters`;
  if (origin === 'array' || origin === 'set') return `must have ${comparison} ${limit} entries`;
  return `must be ${comparison} ${limit}`;
}
