import { NO_CURRENCY, type ShownOrder } from '../core/order.js';
import { knex, select } from './knex.js';
import { metadataOf } from './order-metadata.js';
import type { Statements } from './pool.js';
import { type Columns, type ORDER_COLUMNS, orderOf, type OrderRow } from './tables.js';

type ShownRow = Columns<OrderRow, typeof ORDER_COLUMNS>;

/** Keeps the order of the rows. Reads the currencies of their few sales. @throws MysqlError */
export async function shownOrders(on: Statements, rows: readonly ShownRow[]): Promise<ShownOrder[]> {
  if (rows.length === 0) return [];
  const currencies = await currenciesOfSales(on, rows);
  const metadata = await metadataOf(
    on,
    rows.map(({ id }) => id),
  );
  return rows.map((row) => ({
    ...orderOf(row),
    currency: currencies.get(row.sale_id) ?? NO_CURRENCY,
    metadata: metadata.get(row.id) ?? null,
  }));
}

/** @throws MysqlError */
export async function currenciesOfSales(
  on: Statements,
  rows: readonly { readonly sale_id: string }[],
): Promise<Map<string, string>> {
  if (rows.length === 0) return new Map();
  const saleIds = [...new Set(rows.map(({ sale_id: saleId }) => saleId))];
  const sales = await select(on, knex('sales').select('id', 'currency').whereIn('id', saleIds));
  return new Map(sales.map(({ id, currency }) => [id, currency]));
}
