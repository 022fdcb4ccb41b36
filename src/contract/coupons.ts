import { z } from 'zod';
import { COUPON_CODE, COUPON_STATES } from '../core/coupon.js';
import { must } from '../core/field-errors.js';
import { amount, count, currency, text, time, type BodyOf } from './fields.js';

const codeError = { error: must('a coupon code: 10 digits and letters such as 7KQ2MZP4WX') };
/** Buyers may type lower case. */
export const couponCode = z.string(codeError).toUpperCase().regex(COUPON_CODE, codeError);

const couponFields = {
  code: text,
  saleId: text,
  orderId: text.meta({ description: 'the paid order that earned the coupon' }),
  currency,
  valueCents: amount.nullable().meta({ description: 'the fixed discount; null: see `percent`' }),
  percent: count.nullable(),
  minCents: amount.meta({ description: 'amount from which on an order may use the coupon' }),
  state: z.enum(COUPON_STATES).meta({
    description: '`reserved`: an open payment holds the coupon; `revoked`: by an operator, while it was free',
  }),
  usedOrderId: text.nullable().meta({ description: 'the order that has reserved or redeemed the coupon' }),
  discountCents: amount.nullable().meta({ description: 'the discount that this order got' }),
  createdAt: time,
  expiresAt: time,
  redeemedAt: time.nullable(),
};
const couponSchema = z.object(couponFields).meta({ id: 'Coupon' });
export const foundCoupon = z
  .object({
    ...couponFields,
    userId: text,
    reference: text.nullable().meta({ description: 'the reference of the shop that has redeemed the coupon' }),
  })
  .meta({ id: 'FoundCoupon' });
export const couponsOfBuyer = z.object({ coupons: z.array(couponSchema), next: text.nullable() });
export const revokedStep = z.object({
  outcome: z.literal('done'),
  revoked: count.meta({ description: 'coupons that were revoked; with `dryRun`, that would be' }),
  reserved: count.meta({ description: 'coupons that open payments hold; revoke them again later' }),
  next: text.nullable().meta({ description: 'pass it as `after`; null: no coupon is left' }),
});
export const foundCoupons = z.object({ coupons: z.array(foundCoupon), next: text.nullable() });

export type CouponBody = BodyOf<typeof couponSchema>;
export type CouponsOfBuyer = BodyOf<typeof couponsOfBuyer>;
export type FoundCoupon = BodyOf<typeof foundCoupon>;
export type RevokedStep = BodyOf<typeof revokedStep>;
