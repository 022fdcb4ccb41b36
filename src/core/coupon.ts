import { randomInt } from 'node:crypto';

/** Digits and capital letters without 0, O, 1, I, L and U, which are easily misread. */
const LETTERS = '23456789ABCDEFGHJKMNPQRSTVWXYZ';
export const COUPON_CODE = new RegExp(`^[${LETTERS}]{10}$`);

/** Returns a random code. There are 30^10 codes. */
export const newCouponCode = (): string =>
  Array.from({ length: 10 }, () => LETTERS[randomInt(LETTERS.length)]).join('');

/** The terms of a sale for its coupons, such as `10% 30d` or `500 30d min 2000`. Amounts are in the currency of the sale. */
export const COUPON_TERMS = /^(?:([1-9][0-9]{0,9})|([1-9][0-9]?|100)%) ([1-9][0-9]{0,3})d(?: min ([1-9][0-9]{0,9}))?$/;

/** The discount of a coupon: a fixed amount or a percentage. Exactly one of the two is set. */
interface CouponValue {
  readonly valueCents: number | null;
  readonly percent: number | null;
}

interface CouponTerms extends CouponValue {
  readonly validDays: number;
  /** Minimum amount of the order. */
  readonly minCents: number;
}

/** Null if the text has no terms. */
export function readCouponTerms(text: string): CouponTerms | null {
  const [whole, cents, percent, days, min = 0] = COUPON_TERMS.exec(text) ?? [];
  if (whole === undefined) return null;
  const value = { valueCents: cents === undefined ? null : Number(cents), percent: percent ? Number(percent) : null };
  return { ...value, validDays: Number(days), minCents: Number(min) };
}

/** States in MySQL. `reserved`: held by an open charge. `revoked`: ended by an operator while free. */
export type StoredCouponState = 'free' | 'reserved' | 'redeemed' | 'revoked';
/** `expired`: free, but no longer valid. */
export const COUPON_STATES = ['free', 'reserved', 'redeemed', 'expired', 'revoked'] as const;
export type CouponState = (typeof COUPON_STATES)[number];

export interface Coupon extends CouponValue {
  readonly code: string;
  /** The paid order that earned the coupon. */
  readonly orderId: string;
  readonly saleId: string;
  readonly userId: string;
  readonly currency: string;
  readonly minCents: number;
  readonly state: CouponState;
  /** The order that has reserved or redeemed it. Null if none, or if the shop itself redeemed it. */
  readonly usedOrderId: string | null;
  /** The shop's reference, if the shop itself redeemed the coupon. */
  readonly reference: string | null;
  /** The discount that the order got. */
  readonly discountCents: number | null;
  readonly createdAtMs: number;
  readonly expiresAtMs: number;
  readonly redeemedAtMs: number | null;
}

/** Returns the discount on this amount, at most the whole amount. Percentages are rounded down. */
export function discountOf({ valueCents, percent }: CouponValue, amountCents: number): number {
  if (percent === null) return Math.min(valueCents ?? 0, amountCents);
  const hundreds = Math.floor(amountCents / 100); // amountCents * percent may exceed 2^53
  return hundreds * percent + Math.floor(((amountCents % 100) * percent) / 100);
}

/**
 * Why an order cannot use a coupon.
 * - `not_found`: the buyer has no such coupon
 * - `in_use`: another charge holds it
 * - `too_small`: the order is below the coupon's minimum, or the discount would be zero
 * - `not_chargeable`: the payment provider cannot charge the rest
 * - `other_key`: the key of this charge was used with another coupon, or without one
 */
export type CouponRefusal =
  | 'not_found'
  | 'expired'
  | 'redeemed'
  | 'revoked'
  | 'in_use'
  | 'other_currency'
  | 'too_small'
  | 'not_chargeable'
  | 'other_key';

/** Explains each refusal to people. */
export const COUPON_REFUSALS: Readonly<Record<CouponRefusal, string>> = {
  not_found: 'You have no such coupon.',
  expired: 'The coupon has expired.',
  redeemed: 'The coupon was already used.',
  revoked: 'The coupon was revoked.',
  in_use: 'Another payment is using the coupon.',
  other_currency: 'The coupon is for another currency.',
  too_small: 'The amount of the order is too small for the coupon.',
  not_chargeable: 'The coupon leaves less than the payment provider can charge.',
  other_key: 'This Idempotency-Key was used with another coupon, or without one. Use a new key.',
};

/** Returns the discount that the coupon gives the order, or why the order cannot use the coupon. */
export function offerOf(
  coupon: Coupon | null,
  order: { readonly orderId: string; readonly userId: string; readonly amountCents: number; readonly currency: string },
): number | CouponRefusal {
  if (coupon === null || coupon.userId !== order.userId) return 'not_found';
  // A coupon that this same order has redeemed counts as free: the order was paid after it was read.
  if (coupon.state !== 'free' && coupon.usedOrderId !== order.orderId) {
    return coupon.state === 'reserved' ? 'in_use' : coupon.state;
  }
  if (coupon.currency !== order.currency) return 'other_currency';
  const discountCents = discountOf(coupon, order.amountCents);
  return order.amountCents < coupon.minCents || discountCents === 0 ? 'too_small' : discountCents;
}
