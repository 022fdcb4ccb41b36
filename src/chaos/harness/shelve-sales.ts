import type { Sale } from '../../domain/sale.js';
import { bucketKeys } from '../../redis/keys.js';
import type { StackHands } from './stack-hands.js';

/**
 * Takes sales whose row is over out of the way: to keepers they ended long ago, and Redis knows nothing of them. Else the
 * next row that kills Redis would wait until hundreds of them are rebuilt.
 */
export async function shelveSales({ mysql, redis }: StackHands, sales: readonly Sale[]): Promise<void> {
  if (sales.length === 0) return;
  // longer ago than a keeper asks Redis for a sale that is over
  await mysql.query(
    "UPDATE sales SET state = 'closed', opens_at = NOW(3) - INTERVAL 10 DAY, closes_at = NOW(3) - INTERVAL 9 DAY" +
      ' WHERE id IN (?)',
    [sales.map(({ saleId }) => saleId)],
  );
  for (const { saleId, buckets } of sales) {
    for (let bucket = 0; bucket < buckets; bucket++) {
      const { stock, sale, buyers, requests, pending, moves } = bucketKeys({ saleId, bucket });
      await redis.redis.unlink(stock, sale, buyers, requests, pending, moves);
    }
  }
}

/**
 * No keeper looks at these sales again, but Redis keeps what it has, for a person. A closed sale would not do: while Redis
 * knows it, it is repaired after each loss, and a keeper of a later row may be told to die at its repair.
 */
export async function hideSales({ mysql }: StackHands, sales: readonly Sale[]): Promise<void> {
  if (sales.length === 0) return;
  await mysql.query("UPDATE sales SET state = 'draft' WHERE id IN (?)", [sales.map(({ saleId }) => saleId)]);
}
