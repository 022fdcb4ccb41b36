import type { OrderMoves } from '../ports/order-moves.js';
import type { OrdersMoved } from '../ports/outbox.js';
import type { Release } from '../ports/settlement-ledger.js';
import type { MysqlPool, Transaction } from './pool.js';

interface DueRow {
  readonly id: string;
  readonly sale_id: string;
  readonly user_id: string;
  readonly request_id: string;
  readonly batch_id: string;
  readonly quantity: number;
}

/** Moves of orders, in MySQL. */
export function createOrderMoves(pool: MysqlPool): Pick<OrderMoves, 'expire'> {
  return { expire: (orderIds) => pool.transaction((tx) => expire(tx, orderIds)) };
}

async function expire(tx: Transaction, orderIds: readonly string[]): Promise<number> {
  const rows = await tx.query<DueRow>(
    'SELECT id, sale_id, user_id, request_id, batch_id, quantity FROM orders' +
      " WHERE id IN (?) AND state = 'pending_payment' AND expires_at <= UTC_TIMESTAMP(3) ORDER BY id FOR UPDATE",
    [orderIds],
  );
  if (rows.length === 0) return 0;
  await tx.execute("UPDATE orders SET state = 'expired' WHERE id IN (?)", [rows.map(({ id }) => id)]);
  for (const saleId of [...new Set(rows.map((row) => row.sale_id))].sort()) {
    const ended = rows.filter((row) => row.sale_id === saleId);
    const moved: OrdersMoved = { move: 'expired', saleId, orders: ended.map(({ id }) => id) };
    const insert = 'INSERT INTO outbox (kind, `key`, payload) VALUES (?, ?, ?)';
    await tx.execute(insert, ['orders_moved', moved.orders[0] ?? '', JSON.stringify(moved)]);
    await tx.execute(insert, ['release', moved.orders[0] ?? '', JSON.stringify(ended.map(releaseOf))]);
    const units = ended.reduce((sum, { quantity }) => sum + quantity, 0);
    await tx.execute('UPDATE sales SET sold = sold - ? WHERE id = ?', [units, saleId]);
  }
  return rows.length;
}

const releaseOf = (row: DueRow): Release => ({
  ...{ saleId: row.sale_id, bucket: 0, userId: row.user_id, requestId: row.request_id },
  ...{ orderId: row.id, batchId: row.batch_id, withUnits: true },
});
