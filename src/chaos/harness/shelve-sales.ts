import type { Sale } from '../../domain/sale.js';
import { bucketKeys } from '../../redis/keys.js';
import type { StackHands } from './stack-hands.js';

/**
 * Half messages that a row left open are asked about 10 to 20 s later, longer where the broker is down. Redis must still
 * know their sale then: it could not tell, so the broker would ask for ever, each time another api, and every other half
 * message would go to the api between.
 */
const SHELVE_AFTER_MS = 60_000;

/** Sales whose rows are over. */
export class Shelf {
  readonly #stack: StackHands;
  #waiting: { readonly sales: readonly Sale[]; readonly sinceMs: number }[] = [];

  constructor(stack: StackHands) {
    this.#stack = stack;
  }

  /** To be called when the row is over. */
  put(sales: readonly Sale[]): void {
    this.#waiting.push({ sales, sinceMs: performance.now() });
  }

  /** Shelves the sales that have waited long enough. The servers must run. */
  async tidy(): Promise<void> {
    const untilMs = performance.now() - SHELVE_AFTER_MS;
    const due = this.#waiting.filter(({ sinceMs }) => sinceMs <= untilMs);
    this.#waiting = this.#waiting.filter(({ sinceMs }) => sinceMs > untilMs);
    await shelveSales(
      this.#stack,
      due.flatMap(({ sales }) => sales),
    );
  }
}

/**
 * Takes sales out of the way: to keepers they ended long ago, and Redis knows nothing of them. Else the next row that kills
 * Redis would wait until hundreds of them are rebuilt.
 */
async function shelveSales({ mysql, redis }: StackHands, sales: readonly Sale[]): Promise<void> {
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
