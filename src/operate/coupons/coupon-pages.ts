import type { FoundCoupon } from '../../contract/coupons.js';
import type { CouponFilter, Coupons } from '../../core/ports/coupons.js';
import { withoutUndefined } from '../../core/without-undefined.js';
import { exportLine, headingOf, type ExportFormat } from '../../http/export-lines.js';
import { couponBody } from '../../http/routes/coupons.js';

const PAGE = 1000;

/** New columns come last, because programs may read CSV by position. */
const COLUMNS = [
  'code',
  'userId',
  'saleId',
  'orderId',
  'currency',
  'valueCents',
  'percent',
  'minCents',
  'state',
  'usedOrderId',
  'reference',
  'discountCents',
  'createdAt',
  'expiresAt',
  'redeemedAt',
] as const satisfies readonly (keyof FoundCoupon)[];

/** Yields the text of each page. @throws OperationalError mysql */
export async function* couponPages(
  coupons: Coupons,
  filter: CouponFilter,
  format: ExportFormat,
): AsyncGenerator<string> {
  let heading = headingOf(COLUMNS, format);
  for (let afterOrderId: string | undefined; ;) {
    const page = await coupons.list(filter, { max: PAGE, ...withoutUndefined({ afterOrderId }) });
    yield heading + page.map((coupon) => exportLine(couponBody(coupon), COLUMNS, format)).join('');
    heading = '';
    if (page.length < PAGE) return;
    afterOrderId = page.at(-1)?.orderId;
  }
}
