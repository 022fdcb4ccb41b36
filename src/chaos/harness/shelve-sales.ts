import type { Sale } from '../../domain/sale.js';
import { bucketKeys } from '../../redis/keys.js';
import type { StackHands } from './stack-hands.js';

/**
 * Takes sales whose row is over out of the way: to keepers they ended long ago, and Redis knows nothing of them. Else the
 * next row that kills Redis would wait until hundreds of them are rebuilt.
 */
export async function shelveSales(stack: StackHands, sales: readonly Sale[]): Promise<void> {
  await closeSales(stack, sales);
  const { redis } = stack;
  for (const { saleId, buckets } of sales) {
    for (let bucket = 0; bucket < buckets; bucket++) {
      const { stock, sale, buyers, requests, pending, moves } = bucketKeys({ saleId, bucket });
      await redis.redis.unlink(stock, sale, buyers, requests, pending, moves);
    }
  }
}

/** As above to keepers, but Redis keeps what it has, for a person to look at. A keeper of a later row may be told to die at a repair. */
export async function closeSales({ mysql }: StackHands, sales: readonly Sale[]): Promise<void> {
  if (sales.length === 0) return;
  // longer ago than a keeper asks Redis for a sale that is over
  await mysql.query(
    "UPDATE sales SET state = 'closed', opens_at = NOW(3) - INTERVAL 10 DAY, closes_at = NOW(3) - INTERVAL 9 DAY" +
      ' WHERE id IN (?)',
    [sales.map(({ saleId }) => saleId)],
  );
}
