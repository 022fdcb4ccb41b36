import { assert } from '../core/errors.js';
import type { WritePlan } from '../core/ports/order-repository.js';
import { isTraceId } from '../core/trace-context.js';
import { numeric } from './insert-orders.js';
import { knex, select } from './knex.js';
import type { Statements, Transaction } from './pool.js';

/** Notes the trace ids of the orders of a plan, in the transaction that inserts them: a statement only where there is any. */
export async function insertTraces(tx: Transaction, { orders }: WritePlan): Promise<void> {
  let values = '';
  for (const { orderId, purchase } of orders) {
    if (purchase.traceId === undefined) continue;
    values += `${values === '' ? '' : ','}(${numeric(orderId)},${traceIdLiteral(purchase.traceId)})`;
  }
  if (values !== '') await tx.execute(`INSERT INTO order_traces (order_id, trace_id) VALUES ${values}`);
}

/** The trace id that an order was bought with; null: none is stored. @throws MysqlError */
export async function traceOfOrder(on: Statements, orderId: string): Promise<string | null> {
  const inTable = (table: 'order_traces' | 'order_traces_archive') =>
    knex(table as 'order_traces')
      .select('trace_id')
      .where({ order_id: orderId });
  // one statement sees both tables as of one moment: what moves meanwhile is in one of them
  const [row] = await select(on, inTable('order_traces').unionAll([inTable('order_traces_archive')]));
  return row === undefined ? null : row.trace_id.toString('hex');
}

/** Sixteen bytes as a literal. */
export function traceIdLiteral(traceId: string): string {
  assert(isTraceId(traceId), 'a trace id has 32 hexadecimal digits');
  return `0x${traceId}`;
}
