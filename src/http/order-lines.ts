import type { ShownOrder } from '../core/order.js';
import type { OrderFilter, OrderSearch } from '../core/ports/order-search.js';
import { foundOrderBody } from './routes/find-orders.js';

// Orders as text, for the export over HTTP and that of the command line.

export const EXPORT_FORMATS = ['csv', 'jsonl'] as const;
export type ExportFormat = (typeof EXPORT_FORMATS)[number];

/** Above the size of any table. */
export const EXPORT_MAX = 1_000_000_000;
/** Orders that are read at once, and so the most that wait for a slow reader. */
const PAGE = 1000;

/**
 * The text of each page that is read, empty where none of its orders matches. Nothing is read ahead: who waits before
 * taking the next page holds the search back.
 * @throws OperationalError mysql
 */
export async function* orderPages(
  search: OrderSearch,
  filter: OrderFilter,
  { format, limit }: { readonly format: ExportFormat; readonly limit: number },
): AsyncGenerator<string> {
  let [after, left] = [null as string | null, limit];
  let heading = format === 'csv' ? `${COLUMNS.join(',')}\n` : '';
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
] as const;

/** One line of an export, with its end. */
export function lineOf(order: ShownOrder, format: ExportFormat): string {
  const body = foundOrderBody(order);
  return format === 'jsonl' ? `${JSON.stringify(body)}\n` : `${COLUMNS.map((name) => cellOf(body[name])).join(',')}\n`;
}

/** What a spreadsheet takes for a formula. An id may begin with a hyphen. */
const FORMULA = /^[=+\-@\t\r]/;

/**
 * One cell, harmless in a spreadsheet: text that would be a formula has an apostrophe in front. Metadata is JSON, without
 * the semicolon that divides cells in some countries.
 */
function cellOf(value: unknown): string {
  if (value === null || value === undefined) return '';
  const text = typeof value === 'object' ? JSON.stringify(value).replaceAll(';', String.raw`\u003b`) : String(value);
  const harmless = FORMULA.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}
