import type { Coupon, CouponRefusal } from '../../core/coupon.js';
import type { Clock } from '../../core/ports/clock.js';
import { withoutUndefined } from '../../core/without-undefined.js';
import { insertAudit } from '../../mysql/audit-log.js';
import { auditCoupons, findCoupon } from '../../mysql/coupon-codes.js';
import { bigint, execute, knex, now, select } from '../../mysql/knex.js';
import type { MysqlPool, Transaction } from '../../mysql/pool.js';
import { retryConflicts } from '../../mysql/retry-conflicts.js';
import type { CouponCodeRow } from '../../mysql/tables.js';

/** `redeemed`: by this reference, in this call or an earlier one */
export type DeskAnswer =
  | { readonly outcome: 'redeemed'; readonly coupon: Coupon }
  | { readonly outcome: 'refused'; readonly why: CouponRefusal };

/** Which coupons to revoke. At least one of `saleId` and `codes` is given; with both, the codes must be of the sale. */
export interface RevokeWish {
  readonly saleId?: string;
  /** At most `CODES_MAX`, handled in one step. */
  readonly codes?: readonly string[];
  readonly dryRun: boolean;
  readonly reason: string;
}

/** Counts coupons of this step: `revoked`, and `reserved` by open payments. `not_found`: the `code`, or the sale. */
export type RevokeAnswer =
  | { readonly outcome: 'done'; readonly revoked: number; readonly reserved: number; readonly next: string | null }
  | { readonly outcome: 'not_found'; readonly code: string | null };

/** Redeems coupons for orders of the shop that Seckill does not know, and revokes coupons. */
export interface CouponDesk {
  /** Redeems and audits a free coupon. A repeated `reference` gets the same answer. @throws OperationalError mysql */
  redeem(code: string, reference: string, actor: string): Promise<DeskAnswer>;
  /** Revokes and audits free coupons. `after` null starts at the beginning. @throws OperationalError mysql; repeat */
  revokeNext(wish: RevokeWish, after: string | null, actor: string): Promise<RevokeAnswer>;
}

/** Coupons per transaction, which takes some tens of ms. A payment may wait for it. */
const PER_STEP = 500;
export const CODES_MAX = 100;

export function createCouponDesk(pool: MysqlPool, { clock }: { readonly clock: Clock }): CouponDesk {
  const transaction = <T>(work: (tx: Transaction) => Promise<T>): Promise<T> =>
    retryConflicts(clock, () => pool.transaction(work));
  return {
    redeem: (code, reference, actor) =>
      transaction(async (tx) => {
        const coupon = await findCoupon(tx, code, 'lock');
        if (coupon === null) return { outcome: 'refused', why: 'not_found' };
        const { state } = coupon;
        if (state === 'redeemed' && coupon.reference === reference) return { outcome: 'redeemed', coupon };
        if (state !== 'free') return { outcome: 'refused', why: state === 'reserved' ? 'in_use' : state };
        const byCode = knex('coupon_codes').where({ code });
        await execute(tx, byCode.update({ state: 'redeemed', used_key: reference, redeemed_at: now() }));
        const after = { state: 'redeemed', reference, userId: coupon.userId };
        await insertAudit(tx, {
          actor,
          action: 'coupon.redeemed',
          subject: `coupon:${code}`,
          before: { state },
          after,
        });
        return { outcome: 'redeemed', coupon: (await findCoupon(tx, code)) ?? coupon };
      }),
    revokeNext: ({ saleId, codes, dryRun, reason }, after, actor) =>
      transaction(async (tx) => {
        if (saleId !== undefined) {
          const [sale] = await select(tx, knex('sales').select('id').where({ id: saleId }));
          if (sale === undefined) return { outcome: 'not_found', code: null };
        }
        const rows = await select(tx, page({ saleId, codes }, after, dryRun));
        const unknown = codes?.find((code) => rows.every((row) => row.code !== code));
        if (unknown !== undefined) return { outcome: 'not_found', code: unknown };
        const free = rows.filter(({ state, is_over: isOver }) => state === 'free' && Number(isOver) === 0);
        if (!dryRun && free.length > 0) {
          const byCode = knex('coupon_codes').whereIn(
            'code',
            free.map(({ code }) => code),
          );
          await execute(tx, byCode.update({ state: 'revoked' }));
          await auditCoupons(tx, 'revoked', free, { actor, reason });
        }
        const reserved = rows.filter(({ state }) => state === 'reserved').length;
        const next = codes === undefined && rows.length === PER_STEP ? (rows.at(-1)?.order_id ?? null) : null;
        return { outcome: 'done', revoked: free.length, reserved, next };
      }),
  };
}

type PageRow = Pick<CouponCodeRow, 'code' | 'order_id' | 'state' | 'used_order'> & {
  readonly is_over: number | string;
};

/** Reads the next coupons, and locks them unless it is a dry run. */
function page({ saleId, codes }: Pick<RevokeWish, 'saleId' | 'codes'>, after: string | null, dryRun: boolean) {
  const columns = ['code', 'order_id', 'state', 'used_order', knex.raw('expires_at <= UTC_TIMESTAMP(3) AS is_over')];
  // Without the sale, MySQL may read the coupons of all sales.
  const index = codes === undefined ? 'sale' : 'PRIMARY';
  const coupons = knex
    .from(knex.raw('coupon_codes FORCE INDEX (??)', [index]))
    .select<PageRow[]>(columns)
    .where(withoutUndefined({ sale_id: saleId }));
  if (codes !== undefined) void coupons.whereIn('code', codes);
  else if (after !== null) void coupons.where('order_id', '>', bigint(after));
  const bounded = coupons.orderBy('order_id').limit(codes?.length ?? PER_STEP);
  return dryRun ? bounded : bounded.forUpdate();
}
