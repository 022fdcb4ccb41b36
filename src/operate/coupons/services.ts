import type { Coupons } from '../../core/ports/coupons.js';
import { createCoupons } from '../../mysql/coupon-codes.js';
import type { Connections } from '../../process/connections.js';
import { createCouponDesk, type CouponDesk } from './coupon-desk.js';

export interface CouponServices {
  readonly coupons: Coupons;
  readonly couponDesk: CouponDesk;
}

export function openCoupons(connections: Connections<'mysql' | 'redis'>): CouponServices {
  const mysql = connections.mysql();
  return { coupons: createCoupons(mysql), couponDesk: createCouponDesk(mysql, { clock: connections.clock }) };
}
