import { z } from 'zod';
import { fieldError, fieldErrors, matching, must, plainError, type FieldError } from '../core/field-errors.js';
import type { NewSale } from '../core/sale.js';
import type { CalendarEntry } from '../core/ports/sale-repository.js';
import { BUCKETS_MAX } from '../core/bucket.js';
import { COUPON_TERMS } from '../core/coupon.js';
import { readDuration } from '../core/duration.js';
import { isCurrency } from '../core/amount-text.js';
import type { PriceFault } from '../core/ports/payment-provider.js';
import { isoTime } from '../core/time.js';

/** More than any flash sale offers, far below the limit of a Redis counter or an INT column. */
const STOCK_MAX = 10_000_000;
/** The limit of the MySQL column. Multiplied by the largest quantity, it stays far below 2^53. */
const PRICE_CENTS_MAX = 4_294_967_295;
/** Maximum number of units that one purchase may ask for. */
const LIMIT_PER_BUYER_MAX = 1000;
const TITLE_LENGTH_MAX = 200;

const whole = (min: number, max: number) => {
  const error = must(`a whole number from ${min} to ${max}`);
  return z.int({ error }).min(min, { error }).max(max, { error });
};

/** Excludes escape sequences and changes of direction, which could draw over the text next to a title. */
const NO_CONTROLS = /^[^\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]*$/u;
/** Requires a visible character. Blanks and characters that fonts omit, such as U+200B and U+3164, do not count. */
const VISIBLE = /[^\p{Cc}\p{Cs}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]/u;
/** Both patterns again, for tools that do not support Unicode properties. */
const CONTROLS = '\\u0000-\\u001f\\u007f-\\u009f\\u2028-\\u202e\\u2066-\\u2069\\ud800-\\udfff';
const BLANKS =
  ' \\u00a0\\u00ad\\u034f\\u061c\\u115f\\u1160\\u1680\\u17b4\\u17b5\\u180b-\\u180f\\u2000-\\u200f\\u202f\\u205f-\\u206f\\u2800\\u3000\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\ufff8';
const TITLE_PATTERN = `^[^${CONTROLS}]*[^${CONTROLS}${BLANKS}][^${CONTROLS}]*$`;
const titleError = must(`a text of 1 to ${TITLE_LENGTH_MAX} characters`);

const currencyError = must('three capital letters of ISO 4217 such as EUR');

const WARM_BEFORE_MS_MAX = 7 * 86_400_000;

/** Also the maximum of ORDER_PAYMENT_WINDOW_MS. */
const PAYMENT_WINDOW_MS_MAX = 86_400_000;

const duration = (error: ReturnType<typeof must>, msMax: number, description: string) =>
  z
    .string({ error })
    .refine((text) => isDuration(readDuration(text), msMax), { error })
    .meta({ description, override: { type: 'string', pattern: '^[0-9]{1,6}[smhd]$' } });
const isDuration = (ms: number | null, msMax: number): boolean => ms !== null && ms > 0 && ms <= msMax;

/** The body that creates a sale. Times are ISO 8601. */
export const newSale = z.strictObject({
  sku: matching('1 to 64 of the characters A-Z a-z 0-9 . _ -', /^[A-Za-z0-9._-]{1,64}$/),
  title: z
    .string({ error: titleError })
    .trim()
    .min(1, { error: titleError, abort: true })
    .max(TITLE_LENGTH_MAX, { error: titleError })
    .regex(NO_CONTROLS, { error: 'must not contain control characters', abort: true })
    .regex(VISIBLE, 'must contain a visible character')
    .meta({ override: { type: 'string', minLength: 1, maxLength: TITLE_LENGTH_MAX, pattern: TITLE_PATTERN } }),
  priceCents: whole(0, PRICE_CENTS_MAX).meta({
    description: 'of one unit, in the smallest unit of the currency: 1999 is 19.99 EUR, 1,999 JPY and 1.999 KWD',
  }),
  currency: z
    .string({ error: currencyError })
    .refine(isCurrency, { error: currencyError })
    .optional()
    .meta({ override: { type: 'string', pattern: '^[A-Z]{3}$' } }),
  stock: whole(1, STOCK_MAX),
  limitPerBuyer: whole(1, LIMIT_PER_BUYER_MAX),
  buckets: whole(1, BUCKETS_MAX).default(1),
  opensAt: isoTime,
  closesAt: isoTime,
  warmBefore: duration(
    must('a duration from 1s to 7d, such as 10m'),
    WARM_BEFORE_MS_MAX,
    'the keeper runs this sale: it warms the sale this long before the start, then opens, closes and compares it',
  ).optional(),
  paymentWindow: duration(
    must('a duration from 1s to 1d, such as 10m'),
    PAYMENT_WINDOW_MS_MAX,
    'time that a buyer has to pay; an unpaid order then expires. Default: ORDER_PAYMENT_WINDOW_MS',
  ).optional(),
  coupon: matching('terms such as 10% 30d, or 500 30d min 2000', COUPON_TERMS)
    .meta({
      description:
        'each paid order earns its buyer a coupon: an amount or a percentage, the days that it is valid, and the least amount of the order that uses it. Default: no usable coupons',
    })
    .optional(),
});

export interface PriceTerms {
  /** Currency of a sale that names none: SALE_CURRENCY. */
  readonly currency: string;
  readonly faultOf: PriceFault;
}
const DEFAULT_TERMS: PriceTerms = { currency: 'EUR', faultOf: () => null };

/**
 * Checks a sale before it is created, for HTTP and the command line alike.
 * @param input unchecked
 * @param terms the default currency, and the prices that the provider cannot charge
 * @returns the sale or all of its errors; rules about several fields need each field to be correct
 */
export function readNewSale(
  input: unknown,
  nowMs: number,
  { currency, faultOf }: PriceTerms = DEFAULT_TERMS,
): { readonly sale: NewSale } | { readonly errors: readonly FieldError[] } {
  const read = newSale.safeParse(input, { error: plainError });
  if (!read.success) return { errors: fieldErrors(read.error) };
  const { opensAt, closesAt, warmBefore, paymentWindow, ...rest } = { currency, ...read.data };
  const durations = {
    warmBeforeMs: warmBefore === undefined ? null : readDuration(warmBefore),
    paymentWindowMs: paymentWindow === undefined ? null : readDuration(paymentWindow),
  };
  const sale = { ...rest, opensAtMs: Date.parse(opensAt), closesAtMs: Date.parse(closesAt), ...durations };
  const errors: FieldError[] = [];
  const fault = faultOf({ amountCents: sale.priceCents, currency: sale.currency });
  if (fault !== null) errors.push(fieldError('priceCents', fault));
  if (sale.limitPerBuyer > sale.stock) errors.push(fieldError('limitPerBuyer', 'must not be larger than stock'));
  if (sale.closesAtMs <= sale.opensAtMs) errors.push(fieldError('closesAt', 'must be later than opensAt'));
  else if (sale.closesAtMs <= nowMs) errors.push(fieldError('closesAt', 'must be in the future'));
  return errors.length > 0 ? { errors } : { sale };
}

/** A new sale whose window overlaps another sale of its sku. */
export interface Overlap {
  /** Index of the new sale in the list of sales to create. */
  readonly index: number;
  readonly error: FieldError;
}

interface Window extends Omit<CalendarEntry, 'saleId'> {
  readonly name: string;
  /** Null if already in the calendar. */
  readonly index: number | null;
}

/**
 * Finds new sales that overlap another sale of the same sku, in the list or the calendar. Names each once. A sale may
 * begin when another ends.
 * @param nameOf names a new sale in the error of another sale
 * @param field the field that the errors name
 */
export function overlapsOf(
  sales: readonly NewSale[],
  calendar: readonly CalendarEntry[],
  {
    nameOf = (index) => `sale ${index + 1} of the list`,
    field = 'opensAt',
  }: { readonly nameOf?: (index: number) => string; readonly field?: 'opensAt' | 'closesAt' } = {},
): Overlap[] {
  const windows: Window[] = [
    ...calendar.map(({ saleId, ...window }) => ({ ...window, name: `sale ${saleId}`, index: null })),
    ...sales.map(({ sku, opensAtMs, closesAtMs }, index) => ({
      sku,
      opensAtMs,
      closesAtMs,
      name: nameOf(index),
      index,
    })),
  ];
  windows.sort((a, b) => a.opensAtMs - b.opensAtMs || (a.index ?? -1) - (b.index ?? -1));
  const endsLast = new Map<string, Window>(); // by sku: of the sales that have begun, the sale that ends last
  const overlaps = new Map<number, Overlap>();
  for (const window of windows) {
    const last = endsLast.get(window.sku);
    if (last !== undefined && last.closesAtMs > window.opensAtMs) {
      const [index, other] = window.index === null ? [last.index, window] : [window.index, last];
      if (index !== null && !overlaps.has(index)) overlaps.set(index, { index, error: overlapError(field, other) });
    }
    if (last === undefined || window.closesAtMs > last.closesAtMs) endsLast.set(window.sku, window);
  }
  return [...overlaps.values()].sort((a, b) => a.index - b.index);
}

function overlapError(field: string, { name, sku, opensAtMs, closesAtMs }: Window): FieldError {
  const [from, to] = [opensAtMs, closesAtMs].map((atMs) => new Date(atMs).toISOString());
  return fieldError(field, `overlaps: ${name} offers ${sku} from ${from} to ${to}`);
}
