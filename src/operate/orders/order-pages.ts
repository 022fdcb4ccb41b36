import type { FoundOrder } from '../../contract/orders.js';
import type { ShownOrder } from '../../core/order.js';
import type { OrderFilter, OrderSearch } from '../../core/ports/order-search.js';
import { exportLine, headingOf, type ExportFormat } from '../../http/export-lines.js';
import { orderBody } from '../../http/routes/orders.js';

/** Number of orders per read. At most this many wait for a slow reader. */
const PAGE = 1000;

/** A page is empty if none of its orders matches. A slow caller holds up the search. @throws OperationalError mysql */
export async function* orderPages(
  search: OrderSearch,
  filter: OrderFilter,
  { format, limit }: { readonly format: ExportFormat; readonly limit: number },
): AsyncGenerator<string> {
  let [after, left] = [null as string | null, limit];
  let heading = headingOf(COLUMNS, format);
  do {
    const page = await search.page(filter, after, Math.min(PAGE, left));
    const orders = page?.orders ?? [];
    yield heading + (await foundOrderBodies(orders, search)).map((body) => lineOf(body, format)).join('');
    heading = '';
    after = page?.next ?? null;
    left -= orders.length;
  } while (after !== null && left > 0);
}

/** New columns come last, because programs may read CSV by position. */
const COLUMNS = [
  'orderId',
  'saleId',
  'userId',
  'requestId',
  'batchId',
  'quantity',
  'amountCents',
  'currency',
  'state',
  'reason',
  'createdAt',
  'expiresAt',
  'paidAt',
  'metadata',
  'sku',
  'title',
  'unitPriceCents',
  'paymentId',
  'refundedCents',
] as const satisfies readonly (keyof FoundOrder)[];

export const lineOf = (body: FoundOrder, format: ExportFormat): string => exportLine(body, COLUMNS, format);

/** @throws OperationalError mysql */
export async function foundOrderBodies(
  orders: readonly ShownOrder[],
  search: { readonly detailsOf: OrderSearch['detailsOf'] },
): Promise<FoundOrder[]> {
  const details = await search.detailsOf(orders);
  return orders.map((order) => ({
    ...orderBody(order),
    userId: order.userId,
    batchId: order.batchId,
    unitPriceCents: Math.round(order.amountCents / order.quantity),
    ...(details.get(order.orderId) ?? { sku: '', title: '', paymentId: null }),
  }));
}
