import type { Coupon, CouponState } from '../coupon.js';

/** Conditions that must all hold. An absent condition matches every coupon. */
export interface CouponFilter {
  readonly userId?: string;
  readonly saleId?: string;
  /** The order for which the coupon was issued, or which uses it. */
  readonly orderId?: string;
  readonly state?: CouponState;
}

/** The coupons of sales that have terms for coupons. Methods throw OperationalError mysql. */
export interface Coupons {
  find(code: string): Promise<Coupon | null>;

  /** Lists the newest order first. @param page `afterOrderId`: order of the last coupon of the previous page */
  list(filter: CouponFilter, page: { readonly afterOrderId?: string; readonly max: number }): Promise<Coupon[]>;
}
