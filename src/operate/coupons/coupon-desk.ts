import type { Coupon, CouponRefusal } from '../../core/coupon.js';
import { insertAudit } from '../../mysql/audit-log.js';
import { findCoupon } from '../../mysql/coupon-codes.js';
import { execute, knex, now } from '../../mysql/knex.js';
import type { MysqlPool, Transaction } from '../../mysql/pool.js';

/** `redeemed`: by this reference, now or before */
export type DeskAnswer =
  | { readonly outcome: 'redeemed'; readonly coupon: Coupon }
  | { readonly outcome: 'refused'; readonly why: CouponRefusal };

/** Redeems coupons for orders of the shop that Seckill does not know. */
export interface CouponDesk {
  /**
   * Redeems a free coupon once, and writes an entry of `actor` to the audit log in the same transaction.
   * @param reference of the shop. A repeat with the same reference gets the same answer
   * @throws OperationalError mysql; the coupon may be redeemed, so repeat the call
   */
  redeem(code: string, reference: string, actor: string): Promise<DeskAnswer>;
}

export const createCouponDesk = (pool: MysqlPool): CouponDesk => ({
  redeem: (code, reference, actor) => pool.transaction((tx) => redeem(tx, code, reference, actor)),
});

async function redeem(tx: Transaction, code: string, reference: string, actor: string): Promise<DeskAnswer> {
  const coupon = await findCoupon(tx, code, 'lock');
  if (coupon === null) return { outcome: 'refused', why: 'not_found' };
  const { state } = coupon;
  if (state === 'redeemed' && coupon.reference === reference) return { outcome: 'redeemed', coupon };
  if (state !== 'free') return { outcome: 'refused', why: state === 'reserved' ? 'in_use' : state };
  const byCode = knex('coupon_codes').where({ code });
  await execute(tx, byCode.update({ state: 'redeemed', used_key: reference, redeemed_at: now() }));
  const after = { state: 'redeemed', reference, userId: coupon.userId };
  await insertAudit(tx, { actor, action: 'coupon.redeemed', subject: `coupon:${code}`, before: { state }, after });
  return { outcome: 'redeemed', coupon: (await findCoupon(tx, code)) ?? coupon };
}
