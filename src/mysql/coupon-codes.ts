import { assert, assertNever } from '../core/errors.js';
import { newCouponCode, offerOf, readCouponTerms, type Coupon, type CouponRefusal } from '../core/coupon.js';
import type { CouponFilter, Coupons } from '../core/ports/coupons.js';
import { withoutUndefined } from '../core/without-undefined.js';
import { insertAudit } from './audit-log.js';
import { bigint, execute, knex, now, select } from './knex.js';
import type { CouponUse } from '../core/ports/payment-attempts.js';
import type { MysqlPool, Statements, Transaction } from './pool.js';
import type { CouponCodeRow, OrderRow } from './tables.js';

// Each step runs in the transaction of the order that uses the coupon. A charge reserves the coupon, payment redeems
// it, and any other end frees it.

type FoundRow = CouponCodeRow & { readonly is_over: number | string };

const found = () => knex('coupon_codes').select<FoundRow[]>('*', knex.raw('expires_at <= UTC_TIMESTAMP(3) AS is_over'));

const couponOf = (row: FoundRow): Coupon => ({
  code: row.code,
  orderId: row.order_id,
  saleId: row.sale_id,
  userId: row.user_id,
  currency: row.currency,
  valueCents: row.value_cents === null ? null : Number(row.value_cents),
  percent: row.percent,
  minCents: Number(row.min_cents),
  state: row.state === 'free' && Number(row.is_over) === 1 ? 'expired' : row.state,
  usedOrderId: row.used_order,
  reference: row.used_order === null ? row.used_key : null,
  discountCents: row.discount_cents === null ? null : Number(row.discount_cents),
  createdAtMs: row.created_at.getTime(),
  expiresAtMs: row.expires_at.getTime(),
  redeemedAtMs: row.redeemed_at?.getTime() ?? null,
});

export function createCoupons(pool: MysqlPool): Coupons {
  return {
    find: (code) => findCoupon(pool, code),
    async list({ orderId, ...filter }, { afterOrderId, max }): Promise<Coupon[]> {
      // An OR of two columns would use neither index.
      const ofOrder = orderId === undefined ? [{}] : [{ order_id: orderId }, { used_order: orderId }];
      const rows: FoundRow[] = [];
      for (const where of ofOrder) {
        const page = matching(filter).where(where);
        if (afterOrderId !== undefined) void page.where('order_id', '<', bigint(afterOrderId));
        rows.push(...(await select(pool, page.orderBy('order_id', 'desc').limit(max))));
      }
      const newest = rows.sort((one, other) => Number(BigInt(other.order_id) - BigInt(one.order_id))).slice(0, max);
      return newest.map(couponOf);
    },
  };
}

function matching({ userId, saleId, state }: CouponFilter) {
  const coupons = found().where(withoutUndefined({ user_id: userId, sale_id: saleId }));
  switch (state) {
    case undefined:
      return coupons;
    case 'free':
      return coupons.where({ state }).where('expires_at', '>', now());
    case 'expired':
      return coupons.where({ state: 'free' }).where('expires_at', '<=', now());
    case 'reserved':
    case 'redeemed':
    case 'revoked':
      return coupons.where({ state });
    default:
      return assertNever(state);
  }
}

export async function findCoupon(on: Statements, code: string, lock?: 'lock'): Promise<Coupon | null> {
  const byCode = found().where({ code });
  const [row] = await select(on, lock === 'lock' ? byCode.forUpdate() : byCode);
  return row === undefined ? null : couponOf(row);
}

/** If a code already exists, the transaction fails, and its repeat draws different codes. */
export async function insertCodes(
  tx: Transaction,
  orders: readonly Pick<OrderRow, 'id' | 'sale_id' | 'user_id'>[],
): Promise<void> {
  const ofSales = knex('sales')
    .select('id', 'currency', 'coupon')
    .whereIn('id', [...new Set(orders.map((order) => order.sale_id))]);
  const sales = new Map((await select(tx, ofSales)).map((sale) => [sale.id, sale]));
  const rows = orders.flatMap((order) => {
    const sale = sales.get(order.sale_id);
    const terms = readCouponTerms(sale?.coupon ?? '');
    if (sale === undefined || terms === null) return [];
    return {
      code: newCouponCode(),
      order_id: order.id,
      sale_id: order.sale_id,
      user_id: order.user_id,
      currency: sale.currency,
      value_cents: terms.valueCents === null ? null : String(terms.valueCents),
      percent: terms.percent,
      min_cents: String(terms.minCents),
      expires_at: knex.raw('UTC_TIMESTAMP(3) + INTERVAL ? DAY', [terms.validDays]),
    };
  });
  if (rows.length > 0) await execute(tx, knex('coupon_codes').insert(rows));
}

/** Forces the index, because MySQL may prefer the index of states, and wait for coupons of other payments. */
const reservedBy = (orderIds: readonly string[]) =>
  knex
    .from<CouponCodeRow>(knex.raw('coupon_codes FORCE INDEX (used_order)'))
    .whereIn('used_order', orderIds.map(bigint))
    .where({ state: 'reserved' });

const FREE = { state: 'free', used_order: null, used_key: null, discount_cents: null, redeemed_at: null } as const;

/** Reserves a coupon for the open charge of a locked order. The caller has checked owner, currency and least amount. */
export async function reserveCoupon(
  tx: Transaction,
  { orderId, key }: { readonly orderId: string; readonly key: string },
  { code, discountCents }: CouponUse,
): Promise<'reserved' | CouponRefusal> {
  const [held] = await select(tx, reservedBy([orderId]).select('code', 'used_key'));
  if (held?.used_key === key) return held.code === code ? 'reserved' : 'other_key';
  // The order has no other open charge, so a program of an earlier release has closed that one.
  if (held !== undefined) await freeReserved(tx, [orderId]);
  const free = knex('coupon_codes').where({ code, state: 'free' }).where('expires_at', '>', now());
  const use = { state: 'reserved', used_order: orderId, used_key: key, discount_cents: String(discountCents) } as const;
  if ((await execute(tx, free.update(use))).affectedRows === 1) return 'reserved';
  const state = (await findCoupon(tx, code))?.state ?? 'not_found';
  return state === 'free' || state === 'reserved' ? 'in_use' : state;
}

/** Maximum number of coupons of a buyer that a payment is compared with. */
const COMPARED_MAX = 100;

/** Reserves the buyer's first-expiring coupon with exactly this discount, if a restore lost the reservation. */
export async function reserveFitting(
  tx: Transaction,
  order: Parameters<typeof offerOf>[1],
  { key, discountCents }: { readonly key: string; readonly discountCents: number },
): Promise<boolean> {
  const { orderId, userId } = order;
  const ofBuyer = matching({ userId, state: 'free' }).orderBy('expires_at').limit(COMPARED_MAX);
  for (const row of await select(tx, ofBuyer)) {
    if (offerOf(couponOf(row), order) !== discountCents) continue;
    const use = { code: row.code, discountCents };
    if ((await reserveCoupon(tx, { orderId, key }, use)) === 'reserved') return true;
  }
  return false;
}

export const hasCoupons = async (on: Statements): Promise<boolean> =>
  (await select(on, knex('coupon_codes').select('code').orderBy('code').limit(1))).length > 0;

export async function hasDiscount(tx: Transaction, orderId: string, discountCents: number): Promise<boolean> {
  const reserved = reservedBy([orderId]).where({ discount_cents: String(discountCents) });
  return (await select(tx, reserved.select('code').forUpdate())).length > 0;
}

export async function redeemReserved(tx: Transaction, orderIds: readonly string[]): Promise<void> {
  const { affectedRows } = await execute(tx, reservedBy(orderIds).update({ state: 'redeemed', redeemed_at: now() }));
  assert(affectedRows === orderIds.length, `${orderIds.length} orders have redeemed ${affectedRows} coupons`);
}

/** Frees the coupons that these orders have reserved. @param key if given, only the coupon of this charge */
export async function freeReserved(tx: Transaction, orderIds: readonly string[], key?: string): Promise<void> {
  const reserved = reservedBy(orderIds);
  await execute(tx, (key === undefined ? reserved : reserved.where({ used_key: key })).update(FREE));
}

export interface CouponCause {
  readonly actor: string;
  readonly reason: string;
}

type EndedRow = Pick<CouponCodeRow, 'code' | 'state' | 'used_order'>;

/** Writes one audit entry per coupon, in the transaction that changes them. */
export async function auditCoupons(
  tx: Transaction,
  ending: 'freed' | 'ended' | 'revoked',
  coupons: readonly EndedRow[],
  { actor, reason }: CouponCause,
): Promise<void> {
  const entries = coupons.map(({ code, state, used_order: orderId }) => ({
    ...{ actor, action: `coupon.${ending}`, subject: `coupon:${code}` },
    before: { state, ...(orderId === null ? {} : { orderId }) },
    after: { state: ending === 'freed' ? 'free' : ending === 'ended' ? 'expired' : ending, reason },
  }));
  await insertAudit(tx, ...entries);
}

/** Notes that an operator ends these locked orders, which frees the coupons that they have reserved. */
export async function auditFreed(tx: Transaction, orderIds: readonly string[], cause: CouponCause): Promise<void> {
  const reserved = reservedBy(orderIds).select<EndedRow[]>('code', 'state', 'used_order');
  await auditCoupons(tx, 'freed', await select(tx, reserved.forUpdate()), cause);
}

/** After a full refund, frees the used coupon and ends the earned one, so that returned orders earn no coupons. */
export async function freeRedeemed(tx: Transaction, orderId: string, cause: CouponCause): Promise<void> {
  const redeemed = knex('coupon_codes').where({ used_order: orderId, state: 'redeemed' });
  const freed = await select(tx, redeemed.clone().select('code', 'state', 'used_order').forUpdate());
  await execute(tx, redeemed.update(FREE));
  await auditCoupons(tx, 'freed', freed, cause);
  const brought = knex('coupon_codes').where({ order_id: orderId, state: 'free' }).where('expires_at', '>', now());
  const ended = await select(tx, brought.clone().select('code', 'state', 'used_order').forUpdate());
  await execute(tx, brought.update({ expires_at: now() }));
  await auditCoupons(tx, 'ended', ended, cause);
}
