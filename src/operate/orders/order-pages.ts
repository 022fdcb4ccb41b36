import type { FoundOrder } from '../../contract/orders.js';
import type { ShownOrder } from '../../core/order.js';
import type { OrderFilter, OrderSearch } from '../../core/ports/order-search.js';
import { exportLine, headingOf, type ExportFormat } from '../../http/export-lines.js';
import { orderBody } from '../../http/routes/orders.js';

/** Orders per read, which is also the maximum that waits for a slow reader. */
const PAGE = 1000;

/**
 * Yields the text of each page, empty if none of its orders matches. Reads nothing ahead, so a caller that waits before the
 * next page holds the search back.
 * @throws OperationalError mysql
 */
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
    yield heading + orders.map((order) => lineOf(order, format)).join('');
    heading = '';
    after = page?.next ?? null;
    left -= orders.length;
  } while (after !== null && left > 0);
}

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
  'refundedCents',
] as const;

export const lineOf = (order: ShownOrder, format: ExportFormat): string =>
  exportLine(foundOrderBody(order), COLUMNS, format);

/** Formats an order for operators, over HTTP and on the command line. */
export const foundOrderBody = (order: ShownOrder): FoundOrder => ({
  ...orderBody(order),
  userId: order.userId,
  batchId: order.batchId,
});
