import type { OutboxKind } from '../../../src/core/ports/outbox.js';
import type { StackHands } from './stack-controls.js';

type Repository = Pick<StackHands, 'mysql'>;

/** Rows of a sale in the orders table, the failed ones too; of these buyers only, if given. */
export async function rowsOf(
  { mysql }: Repository,
  saleId: string,
  userIds: readonly string[] | null = null,
): Promise<number> {
  const sql = 'SELECT COUNT(*) AS `rows` FROM orders WHERE sale_id = ?';
  const mine = userIds === null ? '' : ' AND user_id IN (?)';
  const [row] = await mysql.query<{ rows: string }>(sql + mine, [saleId, ...(userIds === null ? [] : [userIds])]);
  return Number(row?.rows);
}

/** Messages of a sale that used their retries up. */
export async function deadLettersOf({ mysql }: Repository, saleId: string): Promise<number> {
  return (await mysql.query('SELECT id FROM dead_letters WHERE sale_id = ?', [saleId])).length;
}

/** Rows of the outbox that tell of the batch which was recorded most often; 1 when each was recorded once. */
export async function recordedTimes({ mysql }: Repository, saleId: string): Promise<number> {
  const rows = await mysql.query<{ copies: string }>(
    "SELECT COUNT(*) AS copies FROM outbox WHERE kind = 'batch_recorded' AND payload LIKE ? GROUP BY `key`",
    [`%"saleId":"${saleId}"%`],
  );
  return Math.max(0, ...rows.map(({ copies }) => Number(copies)));
}

/** Rows of the outbox that wait, of one kind and sale. */
export async function undoneRows(
  { mysql }: Pick<StackHands, 'mysql'>,
  kind: OutboxKind,
  saleId: string,
): Promise<number> {
  const [row] = await mysql.query<{ rows: string }>(
    'SELECT COUNT(*) AS `rows` FROM outbox WHERE kind = ? AND done_at IS NULL AND payload LIKE ?',
    [kind, `%"saleId":"${saleId}"%`],
  );
  return Number(row?.rows);
}

/**
 * Work of a keeper that earlier rows have left: promises in the outbox, and orders that nobody has paid in time. A promise
 * that was tried again and again is one that a test has planted, and nobody can keep it.
 */
export async function workLeft({ mysql }: Pick<StackHands, 'mysql'>): Promise<number> {
  const [row] = await mysql.query<{ readonly work: string }>(
    `SELECT (SELECT COUNT(*) FROM outbox WHERE done_at IS NULL AND attempts < 3)
          + (SELECT COUNT(*) FROM orders WHERE state = 'pending_payment' AND expires_at <= UTC_TIMESTAMP(3)) AS work`,
  );
  return Number(row?.work);
}

const BATCH_ID = 'by-hand';

/** A live order of this buyer that Redis knows nothing of; one a sale. Its unit is counted in MySQL only. */
export async function plantOrder({ mysql }: StackHands, saleId: string, userId: string): Promise<void> {
  await mysql.execute(
    'INSERT INTO orders (id, sale_id, user_id, request_id, batch_id, quantity, amount_cents, one_per_buyer)' +
      ' VALUES (? * 1000 + 1, ?, ?, ?, ?, 1, 1, 1)',
    [saleId, saleId, userId, BATCH_ID, BATCH_ID],
  );
  await mysql.execute('UPDATE sales SET sold = sold + 1 WHERE id = ?', [saleId]);
}

/** Ends it, so that the books agree. */
export async function cancelPlanted({ mysql }: StackHands, saleId: string): Promise<void> {
  const sql = "UPDATE orders SET state = 'cancelled' WHERE sale_id = ? AND batch_id = ?";
  await mysql.execute(sql, [saleId, BATCH_ID]);
  await mysql.execute('UPDATE sales SET sold = sold - 1 WHERE id = ?', [saleId]);
}
