import { isOrderId } from '../domain/ids.js';
import type { LeasedRefund, Refund, RefundBook, RefundState } from '../ports/refund-book.js';
import type { MysqlPool } from './pool.js';

const ERROR_MAX = 1000;

/** What is owed back, in MySQL. Its clock says what is due. */
export function createRefundBook(pool: MysqlPool): RefundBook {
  return {
    lease: (max, leaseMs) => lease(pool, max, leaseMs),
    async markRefunded(paymentId): Promise<void> {
      const sql = "UPDATE refunds SET state = 'refunded', last_error = NULL WHERE payment_id = ? AND state = 'due'";
      await pool.execute(sql, [paymentId]);
    },
    async postpone(paymentId, delayMs, error): Promise<void> {
      const until = 'UTC_TIMESTAMP(3) + INTERVAL ? MICROSECOND';
      const sql = `UPDATE refunds SET available_at = ${until}, last_error = ? WHERE payment_id = ? AND state = 'due'`;
      await pool.execute(sql, [Math.round(delayMs * 1000), error.slice(0, ERROR_MAX), paymentId]);
    },
    refundsOf: (orderId) => refundsOf(pool, orderId),
  };
}

interface RefundRow {
  readonly payment_id: string;
  readonly order_id: string;
  readonly amount_cents: string;
  readonly reason: string;
  readonly state: RefundState;
  readonly attempts: number;
}

/** The lock lasts for these two statements, the lease in `available_at` for the work: no money moves under a lock. */
function lease(pool: MysqlPool, max: number, leaseMs: number): Promise<LeasedRefund[]> {
  return pool.transaction(async (tx) => {
    const rows = await tx.query<RefundRow>(
      'SELECT payment_id, order_id, amount_cents, attempts FROM refunds' +
        " WHERE state = 'due' AND available_at <= UTC_TIMESTAMP(3) ORDER BY available_at LIMIT ? FOR UPDATE SKIP LOCKED",
      [max],
    );
    if (rows.length === 0) return [];
    await tx.execute(
      'UPDATE refunds SET attempts = attempts + 1, available_at = UTC_TIMESTAMP(3) + INTERVAL ? MICROSECOND' +
        ' WHERE payment_id IN (?)',
      [leaseMs * 1000, rows.map((row) => row.payment_id)],
    );
    return rows.map((row) => ({
      ...{ paymentId: row.payment_id, orderId: row.order_id, amountCents: Number(row.amount_cents) },
      attempts: row.attempts + 1,
    }));
  });
}

async function refundsOf(pool: MysqlPool, orderId: string): Promise<Refund[]> {
  if (!isOrderId(orderId)) return []; // MySQL would read 12x as 12
  const rows = await pool.query<RefundRow>(
    'SELECT payment_id, order_id, amount_cents, reason, state FROM refunds WHERE order_id = ? ORDER BY created_at',
    [orderId],
  );
  return rows.map((row) => ({
    ...{ paymentId: row.payment_id, orderId: row.order_id, amountCents: Number(row.amount_cents) },
    ...{ reason: row.reason, state: row.state },
  }));
}
