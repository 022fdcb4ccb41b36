import type { ShownOrder } from '../core/order.js';
import { knex, select } from './knex.js';
import type { Statements } from './pool.js';
import { metadataOf, ORDER_COLUMNS, orderOf, type OrderRow } from './tables.js';

export const SHOWN_COLUMNS = [...ORDER_COLUMNS, 'metadata'] as const satisfies (keyof OrderRow)[];
type ShownRow = Pick<OrderRow, (typeof SHOWN_COLUMNS)[number]>;

/** ISO 4217 for no currency: an order without its sale, which nobody can have but by hand. */
const NO_CURRENCY = 'XXX';

/** Rows as they are shown, in order; the currencies come from the few sales that they are of. @throws MysqlError */
export async function shownOrders(on: Statements, rows: readonly ShownRow[]): Promise<ShownOrder[]> {
  if (rows.length === 0) return [];
  const saleIds = [...new Set(rows.map(({ sale_id: saleId }) => saleId))];
  const sales = await select(on, knex('sales').select('id', 'currency').whereIn('id', saleIds));
  const currencies = new Map(sales.map(({ id, currency }) => [id, currency]));
  return rows.map((row) => ({
    ...orderOf(row),
    currency: currencies.get(row.sale_id) ?? NO_CURRENCY,
    metadata: metadataOf(row),
  }));
}
