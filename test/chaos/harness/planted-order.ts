import type { StackHands } from './stack-hands.js';

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
