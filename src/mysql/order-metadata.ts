import { escape } from 'mysql2';
import type { Metadata } from '../core/metadata.js';
import type { WritePlan } from '../core/ports/order-repository.js';
import { numeric } from './insert-orders.js';
import { knex, select } from './knex.js';
import type { Statements, Transaction } from './pool.js';

/** @throws MysqlError */
export async function metadataOf(on: Statements, orderIds: readonly string[]): Promise<Map<string, Metadata>> {
  const inTable = (table: 'order_metadata' | 'order_metadata_archive') =>
    knex(table as 'order_metadata')
      .select('order_id', 'metadata')
      .whereIn('order_id', orderIds);
  // a single statement sees both tables at the same moment, so it finds a row that moves
  const rows = await select(on, inTable('order_metadata').unionAll([inTable('order_metadata_archive')]));
  return new Map(rows.map(({ order_id: orderId, metadata }) => [orderId, JSON.parse(metadata) as Metadata]));
}

/** Call it in the transaction that inserts the orders. */
export async function insertMetadata(tx: Transaction, { orders }: WritePlan): Promise<void> {
  let values = '';
  for (const { orderId, batch, purchase } of orders) {
    if (purchase.metadata === undefined) continue;
    const ids = `${numeric(orderId)},${numeric(batch.saleId)}`;
    values += `${values === '' ? '' : ','}(${ids},${escape(JSON.stringify(purchase.metadata))})`;
  }
  if (values !== '') await tx.execute(`INSERT INTO order_metadata (order_id, sale_id, metadata) VALUES ${values}`);
}
