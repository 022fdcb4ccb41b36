import type { StackHands } from './stack-hands.js';

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
