import { assert } from '../core/errors.js';
import type { WritePlan } from '../core/ports/order-repository.js';
import { isTraceId } from '../core/trace-context.js';
import { numeric } from './insert-orders.js';
import { knex, select } from './knex.js';
import type { Statements, Transaction } from './pool.js';

/**
 * Writes the trace ids of the orders of a plan, in the transaction that inserts them. Sends a statement only if there
 * are trace ids.
 */
export async function insertTraces(tx: Transaction, { orders }: WritePlan): Promise<void> {
  let values = '';
  for (const { orderId, purchase } of orders) {
    if (purchase.traceId === undefined) continue;
    values += `${values === '' ? '' : ','}(${numeric(orderId)},${traceIdLiteral(purchase.traceId)})`;
  }
  if (values !== '') await tx.execute(`INSERT INTO order_traces (order_id, trace_id) VALUES ${values}`);
}

/** Finds the trace id that an order was bought with, or null if it is not stored. @throws MysqlError */
export async function traceOfOrder(on: Statements, orderId: string): Promise<string | null> {
  const inTable = (table: 'order_traces' | 'order_traces_archive') =>
    knex(table as 'order_traces')
      .select('trace_id')
      .where({ order_id: orderId });
  // a single statement sees both tables at the same moment, so it finds a row that moves
  const [row] = await select(on, inTable('order_traces').unionAll([inTable('order_traces_archive')]));
  return row === undefined ? null : row.trace_id.toString('hex');
}

/** Formats sixteen bytes as a literal. */
export function traceIdLiteral(traceId: string): string {
  assert(isTraceId(traceId), 'a trace id has 32 hexadecimal digits');
  return `0x${traceId}`;
}
