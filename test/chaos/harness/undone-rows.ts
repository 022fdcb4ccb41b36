import type { OutboxKind } from '../../../src/core/ports/outbox.js';
import type { StackHands } from './stack-hands.js';

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
