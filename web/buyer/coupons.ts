import type { CouponBody } from '../../src/contract/coupons.js';
import type { Success } from '../shared/ask.js';
import type { OrderView } from './order.js';

/** A coupon that the order can use. */
export interface CouponChoice {
  readonly code: string;
  readonly discountCents: number;
}

/** Reads the coupons that the order can use, best first. The API checks the chosen one again at the payment. */
export function readCoupons(body: Success['body'], order: OrderView): readonly CouponChoice[] {
  const coupons = Array.isArray(body?.coupons) ? (body.coupons as readonly CouponBody[]) : [];
  return coupons
    .filter(({ state, currency, minCents }) => {
      return state === 'free' && currency === order.currency && minCents <= order.amountCents;
    })
    .map(({ code, valueCents, percent }) => {
      const part = Math.floor((order.amountCents * (percent ?? 0)) / 100);
      return { code, discountCents: valueCents === null ? part : Math.min(valueCents, order.amountCents) };
    })
    .filter(({ discountCents }) => discountCents > 0)
    .sort((a, b) => b.discountCents - a.discountCents);
}
