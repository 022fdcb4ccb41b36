import { assert } from '../core/errors.js';
import type { WritePlan } from '../core/ports/order-repository.js';
import { isTraceId } from '../core/trace-context.js';
import { numeric } from './insert-orders.js';
import type { Transaction } from './pool.js';

/** Call it in the transaction that inserts the orders. */
export async function insertTraces(tx: Transaction, { orders }: WritePlan): Promise<void> {
  let values = '';
  for (const { orderId, batch, purchase } of orders) {
    if (purchase.traceId === undefined) continue;
    const ids = `${numeric(orderId)},${numeric(batch.saleId)}`;
    values += `${values === '' ? '' : ','}(${ids},${traceIdLiteral(purchase.traceId)})`;
  }
  if (values !== '') await tx.execute(`INSERT INTO order_traces (order_id, sale_id, trace_id) VALUES ${values}`);
}

export function traceIdLiteral(traceId: string): string {
  assert(isTraceId(traceId), 'a trace id has 32 hexadecimal digits');
  return `0x${traceId}`;
}
