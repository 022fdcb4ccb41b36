import { z } from 'zod';
import type { NewSale } from '../../core/sale.js';
import { BUCKETS_MAX } from '../../core/unit-transfer.js';
import type { FieldError } from '../problem.js';

/** More units than any flash sale offers, and far below what a Redis counter or an INT column holds. */
const STOCK_MAX = 10_000_000;
/** 10 million in the main unit of money; times the largest quantity it stays far below 2^53. */
const PRICE_CENTS_MAX = 1_000_000_000;
const LIMIT_MAX = 1000;

const whole = (min: number, max: number): z.ZodNumber => {
  const message = `must be a whole number from ${min} to ${max}`;
  return z.int(message).min(min, message).max(max, message);
};

/** DATETIME and ISO 8601 agree on far more years; a sale outside of these is a slip of the keyboard. */
const YEARS = 'must lie in the years 2000 to 2099';
const time = z.iso
  .datetime({ offset: true, error: 'must be a time such as 2030-01-31T20:00:00Z' })
  .transform((text) => Date.parse(text))
  .pipe(z.number().min(Date.UTC(2000, 0), YEARS).max(Date.UTC(2100, 0), YEARS));

const body = z.strictObject({
  sku: z.string('must be a text').regex(/^[A-Za-z0-9._-]{1,64}$/, 'must be 1 to 64 of A-Z a-z 0-9 . _ -'),
  title: z
    .string('must be a text')
    .trim()
    .min(1, 'must have 1 to 200 characters')
    .max(200, 'must have 1 to 200 characters')
    .regex(/^[^\p{Cc}\p{Cs}]*$/u, 'must not hold control characters'),
  priceCents: whole(0, PRICE_CENTS_MAX),
  stock: whole(1, STOCK_MAX),
  limitPerBuyer: whole(1, LIMIT_MAX),
  buckets: whole(1, BUCKETS_MAX).default(1),
  opensAt: time,
  closesAt: time,
});

/** Reads the body of POST /admin/v1/sales: the sale, or what is wrong, field by field. */
export function readNewSale(text: string): NewSale | readonly FieldError[] {
  let raw: unknown;
  try {
    raw = JSON.parse(text);
  } catch {
    return [{ field: 'body', message: 'is not JSON' }];
  }
  const read = body.safeParse(raw);
  if (!read.success) return read.error.issues.flatMap(fieldErrorsOf);
  const { opensAt, closesAt, ...sale } = read.data;
  const errors: FieldError[] = [];
  const wrong = (field: string, message: string): void => void errors.push({ field, message });
  if (sale.limitPerBuyer > sale.stock) wrong('limitPerBuyer', 'must not be larger than stock');
  if (closesAt <= opensAt) wrong('closesAt', 'must be later than opensAt');
  if (errors.length > 0) return errors;
  return { ...sale, opensAtMs: opensAt, closesAtMs: closesAt };
}

function fieldErrorsOf(issue: z.core.$ZodIssue): FieldError[] {
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((field) => ({ field: field.slice(0, 40), message: 'is not known here' }));
  }
  return [{ field: issue.path.join('.') || 'body', message: issue.message }];
}
