import { z } from 'zod';
import { couponsOfBuyer, type FoundCoupon } from '../../contract/coupons.js';
import { isoTime, isoTimeOrNull, limit, nextOf, orderId } from '../../contract/fields.js';
import type { Coupon } from '../../core/coupon.js';
import { withoutUndefined } from '../../core/without-undefined.js';
import { json } from '../answer.js';
import { defineRoute } from '../route.js';

export const listMyCoupons = defineRoute({
  method: 'get',
  path: '/v1/me/coupons',
  label: 'order',
  operationId: 'listMyCoupons',
  summary: 'Lists the coupons of the buyer, newest first. Pass `next` as `after` to get the next page.',
  access: 'buyer',
  query: z.strictObject({ after: orderId.optional(), limit }),
  answers: { 200: { description: 'a page', schema: couponsOfBuyer } },
  async handle({ userId, query: { after: afterOrderId, limit: max } }, { coupons }) {
    const found = await coupons.list({ userId }, { max, ...withoutUndefined({ afterOrderId }) });
    const bodies = found.map((coupon) => {
      const { userId: _, reference: __, ...body } = couponBody(coupon);
      return body;
    });
    return json(200, 'found', { coupons: bodies, next: nextOf(found, max, 'orderId') });
  },
});

/** Formats a coupon for programs, for HTTP and for the command line. */
export const couponBody = ({ createdAtMs, expiresAtMs, redeemedAtMs, ...coupon }: Coupon): FoundCoupon => ({
  ...coupon,
  createdAt: isoTime(createdAtMs),
  expiresAt: isoTime(expiresAtMs),
  redeemedAt: isoTimeOrNull(redeemedAtMs),
});
