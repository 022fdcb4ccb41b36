import { z } from 'zod';
import { ID, ORDER_ID, PAYMENT_ID, SALE_ID, TOKEN_ID, USER_ID } from '../core/ids.js';
import { matching, must } from '../core/field-errors.js';
import { isoTime as isoTimeText, spanReversed } from '../core/time.js';

// Fields that bodies and queries share. A schema with an id becomes a component of the OpenAPI document.

export const id = matching('1 to 64 of the characters A-Z a-z 0-9 _ -', ID);
export const userId = matching('1 to 128 visible ASCII characters', USER_ID);
/** Claim `jti` of a token. */
export const tokenId = matching('1 to 128 visible ASCII characters', TOKEN_ID);
export const saleId = matching('a whole number', SALE_ID);
export const orderId = matching('a whole number', ORDER_ID);
export const paymentId = matching('a payment id', PAYMENT_ID);
/** Row numbers are BIGINT in MySQL, and decimal strings elsewhere. */
export const rowId = matching('a whole number', /^[1-9][0-9]{0,17}$/);

export const saleParams = z.object({ saleId });

/** A time in an answer: UTC with milliseconds. */
export const time = z.iso.datetime();
export const count = z.int().min(0);
export const amount = count.meta({
  description: 'in the smallest unit of the currency: 1999 is 19.99 EUR or 1,999 JPY',
});
export const text = z.string();

/** Formats a time for an answer: ISO 8601 in UTC with milliseconds. */
export const isoTime = (ms: number): string => new Date(ms).toISOString();
export const isoTimeOrNull = (ms: number | null): string | null => (ms === null ? null : isoTime(ms));

/** Values in a query are text. A name that is given twice becomes an array, which is refused. */
const onceError = { error: 'must be given once' };
export const queryText = (lengthMax: number) =>
  z.string(onceError).min(1, 'must not be empty').max(lengthMax, `must have at most ${lengthMax} characters`);

export const queryWord = <const W extends readonly [string, ...string[]]>(words: W) =>
  z.enum(words, { error: must(`one of ${words.join(', ')}`) });

/** ISO 8601 in the query, Unix ms in the handler. */
export const queryTime = isoTimeText.transform((text) => Date.parse(text));

/** A filter of rows. The end of a time span must not be before its beginning. */
export const filterObject = <S extends z.core.$ZodLooseShape>(shape: S) =>
  z.strictObject(shape).check(({ value, issues }) => {
    const span = spanReversed(value);
    if (span === null) return;
    issues.push({ code: 'custom', input: value, path: [span.to], message: `must not be earlier than ${span.from}` });
  });

const ROWS_MAX = 200;
const ROWS_DEFAULT = 50;
/** Maximum number of rows of a list. */
export const limit = queryWhole(1, ROWS_MAX).default(ROWS_DEFAULT);

/** Returns this field of the last row, where the next page starts. Null if this page is the last. */
export const nextOf = <T, K extends keyof T>(found: readonly T[], max: number, field: K): T[K] | null =>
  found.length < max ? null : (found.at(-1)?.[field] ?? null);

/** Digits in the query, a number in the handler and in the document. */
export function queryWhole(min: number, max: number) {
  const error = must(`a whole number from ${min} to ${max}`);
  return z
    .string({ error })
    .regex(new RegExp(`^[0-9]{1,${String(max).length}}$`), { error })
    .transform(Number)
    .pipe(z.int({ error }).min(min, { error }).max(max, { error }))
    .meta({ override: { type: 'integer', minimum: min, maximum: max } });
}

/** Code of ISO 4217. */
export const currency = matching('three capital letters such as EUR', /^[A-Z]{3}$/);

/** The type of a body, made read-only. */
export type BodyOf<S extends z.ZodType> = Immutable<z.output<S>>;
type Immutable<T> = T extends readonly (infer E)[]
  ? readonly Immutable<E>[]
  : T extends object
    ? { readonly [K in keyof T]: Immutable<T[K]> }
    : T;
