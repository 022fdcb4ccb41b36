import { z } from 'zod';
import { couponCode, foundCoupon, foundCoupons, revokedStep } from '../../contract/coupons.js';
import { id, limit, nextOf, orderId, queryWord, saleId, text, userId } from '../../contract/fields.js';
import { COUPON_REFUSALS, COUPON_STATES } from '../../core/coupon.js';
import type { CouponFilter } from '../../core/ports/coupons.js';
import { withoutUndefined } from '../../core/without-undefined.js';
import { json, problem } from '../../http/answer.js';
import { EXPORT_FORMATS } from '../../http/export-lines.js';
import { operatorRoute, jsonBody, type Route, type RouteServices } from '../../http/route.js';
import { couponBody } from '../../http/routes/coupons.js';
import { EXPORT_ANSWER, sendExport } from '../../http/send-export.js';
import { CODES_MAX } from './coupon-desk.js';
import { couponPages } from './coupon-pages.js';
import type { CouponServices } from './services.js';

const couponFilter = {
  user: userId.optional(),
  sale: saleId.optional(),
  order: orderId.optional().meta({ description: 'the order that brought the coupon, or uses it' }),
  state: queryWord(COUPON_STATES).optional(),
};

const filterOf = ({ user, sale, order, state }: z.output<z.ZodObject<typeof couponFilter>>): CouponFilter =>
  withoutUndefined({ userId: user, saleId: sale, orderId: order, state });

const listCoupons = operatorRoute({
  method: 'get',
  path: '/admin/v1/coupons',
  operationId: 'listCoupons',
  summary: 'Lists coupons, newest first. Pass `next` as `after` to get the next page.',
  access: 'viewer',
  query: z.strictObject({ ...couponFilter, after: orderId.optional(), limit }),
  answers: { 200: { description: 'a page', schema: foundCoupons } },
  problems: [],
  async handle({ query: { after: afterOrderId, limit: max, ...query } }, { coupons }: CouponServices) {
    const found = await coupons.list(filterOf(query), { max, ...withoutUndefined({ afterOrderId }) });
    return json(200, 'found', { coupons: found.map(couponBody), next: nextOf(found, max, 'orderId') });
  },
});

const exportCoupons = operatorRoute({
  method: 'get',
  path: '/admin/v1/coupons/export',
  operationId: 'exportCoupons',
  summary: 'Exports coupons, newest first. A response that breaks off is incomplete.',
  access: 'viewer',
  query: z.strictObject({ ...couponFilter, format: queryWord(EXPORT_FORMATS).default('csv') }),
  answers: { 200: EXPORT_ANSWER },
  problems: ['overloaded'],
  handle: (call, services: RouteServices & CouponServices) =>
    sendExport(call, 'coupons', couponPages(services.coupons, filterOf(call.query), call.query.format), services),
});

const params = z.object({ code: couponCode });

const readCoupon = operatorRoute({
  method: 'get',
  path: '/admin/v1/coupons/{code}',
  operationId: 'readCoupon',
  summary: 'Returns a coupon.',
  access: 'viewer',
  params,
  answers: { 200: { description: 'the coupon', schema: foundCoupon } },
  problems: ['coupon_not_found'],
  async handle({ params: { code } }, { coupons }: CouponServices) {
    const coupon = await coupons.find(code);
    return coupon === null ? problem('coupon_not_found') : json(200, 'found', couponBody(coupon));
  },
});

const redeemCoupon = operatorRoute({
  method: 'post',
  path: '/admin/v1/coupons/{code}/redeem',
  operationId: 'redeemCoupon',
  summary:
    'Redeems a coupon for an order of the shop that is not of a sale. Each coupon is redeemed once. Safe to repeat with the same `order`.',
  access: 'operator',
  params,
  body: jsonBody(z.strictObject({ order: id.meta({ description: 'your reference; also the key of this request' }) })),
  answers: { 200: { description: 'the redeemed coupon', schema: foundCoupon } },
  problems: ['coupon_not_found', 'coupon_refused'],
  async handle({ params: { code }, body: { order }, userId: actor }, { couponDesk }: CouponServices) {
    const answer = await couponDesk.redeem(code, order, actor);
    if (answer.outcome === 'redeemed') return json(200, answer.outcome, couponBody(answer.coupon));
    if (answer.why === 'not_found') return problem('coupon_not_found');
    return problem('coupon_refused', { detail: COUPON_REFUSALS[answer.why] });
  },
});

const revokeCoupons = operatorRoute({
  method: 'post',
  path: '/admin/v1/coupons/revoke',
  operationId: 'revokeCoupons',
  summary:
    'Revokes the free coupons of a sale, up to 500 per call, or coupons by their codes. Pass `next` as `after` until it is null. A coupon that an open payment holds stays. Safe to repeat.',
  access: 'admin',
  body: jsonBody(
    z
      .strictObject({
        saleId: saleId.optional().meta({ description: 'coupons that orders of this sale brought' }),
        codes: z.array(couponCode).min(1).max(CODES_MAX).optional(),
        dryRun: z.boolean().default(false).meta({ description: 'only count' }),
        reason: text.trim().min(1).max(500).meta({ description: 'for the audit log' }),
        after: orderId.optional(),
      })
      .refine(({ saleId, codes }) => saleId !== undefined || codes !== undefined, {
        error: 'must name saleId, codes or both',
      }),
  ),
  answers: { 200: { description: 'the coupons of this call', schema: revokedStep } },
  problems: ['not_found', 'coupon_not_found'],
  async handle({ body: { after, dryRun, reason, ...which }, userId: actor }, { couponDesk }: CouponServices) {
    const wish = { dryRun, reason, ...withoutUndefined(which) };
    const answer = await couponDesk.revokeNext(wish, after ?? null, actor);
    if (answer.outcome === 'done') return json(200, 'done', answer);
    const { code } = answer;
    return code === null
      ? problem('not_found')
      : problem('coupon_not_found', { detail: `There is no coupon ${code}.` });
  },
});

export const couponRoutes: readonly Route<CouponServices>[] = [
  listCoupons,
  exportCoupons,
  revokeCoupons, // before `{code}`, which would take its address
  readCoupon,
  redeemCoupon,
];
