import type { Sale } from '../../../src/core/sale.js';
import { bucketKeys } from '../../../src/redis/keys.js';
import type { StackHands } from './stack-hands.js';

/**
 * Takes sales whose row is over out of the way, when nothing writes their orders any more. To keepers they ended long ago, and
 * Redis knows nothing of them: else the next row that kills it would wait until hundreds of them are rebuilt. No order of
 * theirs waits for its payment: it would fall due a quarter of an hour later, in a row whose keeper is to die at its own.
 */
export async function shelveSales({ mysql, redis }: StackHands, sales: readonly Sale[]): Promise<void> {
  if (sales.length === 0) return;
  const ids = [sales.map(({ saleId }) => saleId)];
  // longer ago than a keeper asks Redis for a sale that is over
  await mysql.query(
    "UPDATE sales SET state = 'closed', opens_at = NOW(3) - INTERVAL 10 DAY, closes_at = NOW(3) - INTERVAL 9 DAY" +
      ' WHERE id IN (?)',
    ids,
  );
  await mysql.query("UPDATE orders SET state = 'expired' WHERE state = 'pending_payment' AND sale_id IN (?)", ids);
  for (const { saleId, buckets } of sales) {
    for (let bucket = 0; bucket < buckets; bucket++) {
      const { stock, sale, buyers, requests, pending, moves } = bucketKeys({ saleId, bucket });
      await redis.redis.unlink(stock, sale, buyers, requests, pending, moves);
    }
  }
}

/**
 * No keeper repairs these sales any more, and Redis keeps what it has, for a person. A closed sale would not do: while Redis
 * knows it, it is repaired after each loss, and a keeper of a later row may be told to die at its repair. Their orders are
 * left as they are too, so they fall due.
 */
export async function hideSales({ mysql }: StackHands, sales: readonly Sale[]): Promise<void> {
  if (sales.length === 0) return;
  await mysql.query("UPDATE sales SET state = 'draft' WHERE id IN (?)", [sales.map(({ saleId }) => saleId)]);
}
