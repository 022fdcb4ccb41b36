import type { AuditedRow, OrderAudit } from '../core/ports/audit.js';
import type { OrderRow } from './order-rows.js';
import type { MysqlPool } from './pool.js';
import { createSaleRepository } from './sale-repository.js';

/** Rows that one statement reads: some tens of ms, far below any time-out of a statement. */
const WINDOW_ROWS = 20_000;

type Row = Pick<OrderRow, 'id' | 'user_id' | 'request_id' | 'batch_id' | 'quantity' | 'state' | 'reason' | 'paid_at'>;

/** Reads the book of a sale whole, for audits. Each statement sees what is committed at its moment. */
export function createOrderAudit(pool: MysqlPool, windowRows: number = WINDOW_ROWS): OrderAudit {
  return {
    findSale: (saleId) => createSaleRepository(pool).find(saleId),
    orders: (saleId) => orders(pool, saleId, windowRows),
    undoneReleases: (saleId) => undoneReleases(pool, saleId),
  };
}

/**
 * Walks the table once by its primary key, window by window: an index by sale would cost every insert of a rush, and
 * only audits would use it. Ids go beyond 2^53, so they are compared as integers and never as text.
 */
async function* orders(pool: MysqlPool, saleId: string, windowRows: number): AsyncGenerator<readonly AuditedRow[]> {
  let last = '0';
  for (;;) {
    const [window] = await pool.query<{ readonly end: string | null }>(
      'SELECT MAX(id) AS end FROM (SELECT id FROM orders WHERE id > CAST(? AS UNSIGNED) ORDER BY id LIMIT ?) AS next',
      [last, windowRows],
    );
    const end = window?.end ?? null;
    if (end === null) return;
    const rows = await pool.query<Row>(
      'SELECT id, user_id, request_id, batch_id, quantity, state, reason, paid_at FROM orders' +
        ' WHERE id > CAST(? AS UNSIGNED) AND id <= CAST(? AS UNSIGNED) AND sale_id = ? ORDER BY id',
      [last, end, saleId],
    );
    if (rows.length > 0) yield rows.map(auditedOf);
    last = end;
  }
}

const auditedOf = (row: Row): AuditedRow => ({
  orderId: row.id,
  userId: row.user_id,
  requestId: row.request_id,
  batchId: row.batch_id,
  quantity: row.quantity,
  state: row.state,
  reason: row.reason,
  paidAtMs: row.paid_at?.getTime() ?? null,
});

/** One row may carry releases of several sales. Sale ids are digits, so the pattern needs no escape. */
async function undoneReleases(pool: MysqlPool, saleId: string): Promise<number> {
  const [row] = await pool.query<{ readonly undone: string }>(
    "SELECT COUNT(*) AS undone FROM outbox WHERE kind = 'release' AND done_at IS NULL AND payload LIKE ?",
    [`%"saleId":"${saleId}"%`],
  );
  return Number(row?.undone ?? 0);
}
