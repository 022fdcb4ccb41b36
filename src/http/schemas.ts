import { z } from 'zod';
import { ID, ORDER_ID, PAYMENT_ID, SALE_ID, TOKEN_ID, USER_ID } from '../core/ids.js';
import { METADATA_NAME } from '../core/metadata.js';
import { matching, must } from '../core/field-errors.js';
import { REFUND_STATES } from '../core/ports/refund-repository.js';
import { SALE_STATES } from '../core/sale.js';
import { isoTime as isoTimeText, spanReversed } from '../core/time.js';
import { FAILURE_REASONS, ORDER_STATES } from '../core/order.js';
import { SHOWN_STATES, SHOWN_STOCKS } from '../sales/get-sale.js';
import { PROBLEMS, type ProblemCode } from './problem.js';

/** Shapes that several routes share. A schema with an id is one of `components` in the OpenAPI document. */

export const id = matching('1 to 64 of the characters A-Z a-z 0-9 _ -', ID);
export const userId = matching('1 to 128 visible ASCII characters', USER_ID);
/** Claim `jti` of a token. */
export const tokenId = matching('1 to 128 visible ASCII characters', TOKEN_ID);
export const saleId = matching('a whole number', SALE_ID);
export const orderId = matching('a whole number', ORDER_ID);
export const paymentId = matching('a payment id', PAYMENT_ID);
/** Numbers of rows: BIGINT in MySQL, a decimal string outside of it. */
export const rowId = matching('a whole number', /^[1-9][0-9]{0,17}$/);

export const saleParams = z.object({ saleId });

/** A time in an answer: UTC with milliseconds. */
export const time = z.iso.datetime();
export const count = z.int().min(0);
export const amount = count.meta({
  description: 'in the smallest unit of its currency: 1999 is 19.99 EUR or 1,999 JPY',
});
export const text = z.string();

/** Times leave this API as ISO 8601 in UTC with milliseconds. */
export const isoTime = (ms: number): string => new Date(ms).toISOString();
export const isoTimeOrNull = (ms: number | null): string | null => (ms === null ? null : isoTime(ms));

/** Everything in a query is text; an array (the same name twice) is not. */
const onceError = { error: 'must be given once' };
export const queryText = (lengthMax: number) =>
  z.string(onceError).min(1, 'must not be empty').max(lengthMax, `must have at most ${lengthMax} characters`);

export const queryWord = <const W extends readonly [string, ...string[]]>(words: W) =>
  z.enum(words, { error: must(`one of ${words.join(', ')}`) });

/** ISO 8601; Unix ms for the handler. */
export const queryTime = isoTimeText.transform((text) => Date.parse(text));

/** What rows are looked for by: where it names both ends of a time, the end is not before the beginning. */
export const filterObject = <S extends z.core.$ZodLooseShape>(shape: S) =>
  z.strictObject(shape).check(({ value, issues }) => {
    const span = spanReversed(value);
    if (span === null) return;
    issues.push({ code: 'custom', input: value, path: [span.to], message: `must not be earlier than ${span.from}` });
  });

const ROWS_MAX = 200;
const ROWS_DEFAULT = 50;
/** How many rows of a list are wanted. */
export const limit = queryWhole(1, ROWS_MAX).default(ROWS_DEFAULT);

/** Where the next page of a list begins, by this field of its last row; null: this page is the last one. */
export const nextOf = <T, K extends keyof T>(found: readonly T[], max: number, field: K): T[K] | null =>
  found.length < max ? null : (found.at(-1)?.[field] ?? null);

/** Digits in a query; a number for the handler and in the document. */
export function queryWhole(min: number, max: number) {
  const error = must(`a whole number from ${min} to ${max}`);
  return z
    .string({ error })
    .regex(new RegExp(`^[0-9]{1,${String(max).length}}$`), { error })
    .transform(Number)
    .pipe(z.int({ error }).min(min, { error }).max(max, { error }))
    .meta({ override: { type: 'integer', minimum: min, maximum: max } });
}

export const fieldErrorList = z.array(z.object({ field: text, message: text }));

export const problemSchema = z
  .object({
    type: text,
    title: text,
    status: z.int(),
    detail: text,
    code: z.enum(Object.keys(PROBLEMS) as [ProblemCode, ...ProblemCode[]]),
    requestId: text.nullable(),
    retryable: z.boolean(),
    retryAfterMs: count.optional().meta({ description: 'present exactly when `retryable`' }),
    errors: fieldErrorList.optional().meta({ description: 'one sentence per wrong field' }),
  })
  .meta({ id: 'Problem', description: 'RFC 9457; `code` is the word that a program reads.' });

/** ISO 4217. */
export const currency = matching('three capital letters such as EUR', /^[A-Z]{3}$/);

const saleFields = {
  saleId,
  sku: text,
  title: text,
  priceCents: amount,
  currency: currency.meta({ description: 'of the price and of all orders: three letters of ISO 4217' }),
  limitPerBuyer: count,
  opensAt: time,
  closesAt: time,
};

/** What a sale may ask of a purchase, beside a token. */
const PROOFS = ['signature', 'purchase_token', 'queue_pass'] as const;
export type Proof = (typeof PROOFS)[number];

export const salePage = z
  .object({
    ...saleFields,
    state: z.enum(SHOWN_STATES),
    stock: z.enum(SHOWN_STOCKS),
    asksFor: z
      .array(z.enum(PROOFS))
      .meta({ description: 'what a purchase must show: a signature, a purchase token, a pass of the waiting room' }),
    serverTime: time.meta({ description: 'when this was answered; caches may have kept it since' }),
  })
  .meta({ id: 'SalePage' });

export const saleSchema = z
  .object({
    ...saleFields,
    warmBefore: text.nullable().meta({ description: 'null: a person warms, opens and closes it' }),
    stock: count,
    sold: count,
    buckets: count,
    epoch: count,
    state: z.enum(SALE_STATES),
    retiredAt: time.nullable(),
  })
  .meta({ id: 'Sale' });

/** What the caller of the purchase noted on it. */
export const metadataSchema = z.record(matching('a name', METADATA_NAME), text);

const orderFields = {
  orderId,
  saleId,
  requestId: id,
  quantity: count,
  amountCents: amount,
  currency: currency.meta({ description: 'of the amount: three letters of ISO 4217' }),
  state: z.enum(ORDER_STATES),
  reason: z.enum(FAILURE_REASONS).nullable(),
  createdAt: time,
  expiresAt: time.nullable(),
  paidAt: time.nullable(),
  metadata: metadataSchema.nullable().meta({ description: 'as the purchase gave it' }),
};
export const orderSchema = z.object(orderFields).meta({ id: 'Order' });
export const orderPageSchema = z
  .object({
    ...orderFields,
    refunds: z
      .array(z.object({ amountCents: amount, state: z.enum(REFUND_STATES), reason: text }))
      .min(1)
      .optional(),
  })
  .meta({ id: 'OrderWithRefunds' });

export const purchaseSchema = z
  .object({
    requestId: id,
    saleId: saleId.optional(),
    status: z.enum(['pending', 'ordered', 'failed']),
    orderId: orderId.optional(),
    orderState: z.enum(ORDER_STATES).optional(),
    reason: text.optional(),
  })
  .meta({ id: 'Purchase' });

/** What stands in for an answer while there is too much to do: fields of the full answer, and how poor it is. */
export const degradedSchema = z
  .looseObject({
    degraded: z.enum(['L1', 'L2', 'L3']).meta({ description: 'an old answer, its essential fields, or an empty one' }),
    ageMs: count.optional().meta({ description: 'how old it is, in ms; absent: just read, or nothing is known' }),
  })
  .meta({ id: 'Degraded' });
