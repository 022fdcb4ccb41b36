import { isOrderId } from '../core/ids.js';
import type {
  LeasedRefund,
  Refund,
  RefundRepository,
  RefundFilter,
  RefundPage,
  RefundState,
  StoredRefund,
  TakeOnOutcome,
} from '../core/ports/refund-repository.js';
import { insertAudit } from './audit-log.js';
import type { MysqlPool, SqlValue } from './pool.js';

const ERROR_MAX = 1000;

/** What is owed back, in MySQL. Its clock says what is due. */
export function createRefundRepository(pool: MysqlPool): RefundRepository {
  return {
    lease: (max, leaseMs) => lease(pool, max, leaseMs),
    async markRefunded(paymentId): Promise<boolean> {
      const { affectedRows } = await pool.execute(MARK_REFUNDED, [paymentId]);
      return affectedRows > 0;
    },
    async postpone(paymentId, delayMs, error): Promise<void> {
      const until = 'UTC_TIMESTAMP(3) + INTERVAL ? MICROSECOND';
      const sql = `UPDATE refunds SET available_at = ${until}, last_error = ? WHERE payment_id = ? AND state = 'due'`;
      await pool.execute(sql, [Math.round(delayMs * 1000), error.slice(0, ERROR_MAX), paymentId]);
    },
    refundsOf: (orderId) => refundsOf(pool, orderId),
    list: (filter, page) => list(pool, filter, page),
    takeOn: (paymentId, actor) => takeOn(pool, paymentId, actor),
  };
}

const MARK_REFUNDED = "UPDATE refunds SET state = 'refunded', last_error = NULL WHERE payment_id = ? AND state = 'due'";

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

interface StoredRow extends RefundRow {
  readonly last_error: string | null;
  readonly created_at: Date;
  readonly updated_at: Date;
}

const STORED = 'payment_id, order_id, amount_cents, reason, state, attempts, last_error, created_at, updated_at';

async function list(
  pool: MysqlPool,
  { state }: RefundFilter,
  { afterPaymentId, max }: RefundPage,
): Promise<StoredRefund[]> {
  const conditions: string[] = ['TRUE'];
  const values: SqlValue[] = [];
  if (state !== undefined) {
    conditions.push('state = ?');
    values.push(state);
  }
  if (afterPaymentId !== undefined) {
    conditions.push('(created_at, payment_id) > (SELECT created_at, payment_id FROM refunds WHERE payment_id = ?)');
    values.push(afterPaymentId);
  }
  const rows = await pool.query<StoredRow>(
    `SELECT ${STORED} FROM refunds WHERE ${conditions.join(' AND ')} ORDER BY created_at, payment_id LIMIT ?`,
    [...values, max],
  );
  return rows.map(storedOf);
}

function takeOn(pool: MysqlPool, paymentId: string, actor: string): Promise<TakeOnOutcome> {
  const sql = `SELECT ${STORED} FROM refunds WHERE payment_id = ?`;
  return pool.transaction(async (tx) => {
    const [row] = await tx.query<StoredRow>(`${sql} FOR UPDATE`, [paymentId]);
    if (row === undefined) return { outcome: 'not_found' };
    if (row.state === 'refunded') return { outcome: 'already_refunded', refund: storedOf(row) };
    await tx.execute(MARK_REFUNDED, [paymentId]);
    const { state, attempts, lastError, orderId, amountCents } = storedOf(row);
    const before = { state, attempts, lastError };
    const after = { state: 'refunded', orderId, amountCents };
    await insertAudit(tx, { actor, action: 'refund.taken_on', subject: `refund:${paymentId}`, before, after });
    const [now] = await tx.query<StoredRow>(sql, [paymentId]);
    return { outcome: 'done', refund: storedOf(now ?? row) };
  });
}

const storedOf = (row: StoredRow): StoredRefund => ({
  ...{ paymentId: row.payment_id, orderId: row.order_id, amountCents: Number(row.amount_cents) },
  ...{ reason: row.reason, state: row.state, attempts: row.attempts, lastError: row.last_error },
  ...{ createdAtMs: row.created_at.getTime(), updatedAtMs: row.updated_at.getTime() },
});
