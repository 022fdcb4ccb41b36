import { composeOrderId, SEQUENCE_PER_MS } from '../../src/core/order-id.js';
import { createOrderRepository } from '../../src/mysql/order-repository.js';
import type { NewOrder } from '../../src/core/ports/order-repository.js';
import { BenchError } from '../bench-error.js';
import type { Session } from '../session/session.js';
import { freshBatch } from './batches.js';
import { throughput, type ThroughputOptions } from './throughput.js';

const STOCK = 10_000_000;
/** A slot that no worker of the bench gets: they take the lowest. */
const SLOT = 255;
/** Long ago, so that these ids never meet those of a worker. */
const FIRST_ID_MS = Date.UTC(2024, 1, 1);

/**
 * Rows per second through the writer transaction: orders, outbox, guard, commit.
 * @param shape batches in one transaction, purchases in one batch
 */
export async function insertLimit(
  { books }: Session,
  { batches, size }: { readonly batches: number; readonly size: number },
  options: ThroughputOptions,
): Promise<number> {
  const { saleId } = await books.openSale('insert', STOCK);
  const repository = createOrderRepository(books.mysql);
  const terms = await repository.termsOf([saleId]);
  return throughput(options, async (place) => {
    const orders = Array.from({ length: batches }, (_, index) =>
      freshBatch(saleId, place * batches + index, size),
    ).flatMap((batch) =>
      batch.purchases.map((purchase): NewOrder => {
        return { orderId: nextId(purchase.userId), batch, purchase, failure: null };
      }),
    );
    const plan = { terms, orders, releases: [], oneByOne: new Set<string>(), paymentWindowMs: 900_000 };
    const written = await repository.write(plan);
    if (written.outcome === 'again') return 0;
    if (written.outcome !== 'written') throw new BenchError(`the order book said ${written.outcome}`);
    return orders.length;
  });
}

/** Order ids of one slot, without a clock: their time part just counts, from one part of the scenario to the next. */
let idsGiven = 0;
function nextId(userId: string): string {
  const place = idsGiven++;
  return composeOrderId(FIRST_ID_MS + Math.floor(place / SEQUENCE_PER_MS), SLOT, userId, place % SEQUENCE_PER_MS);
}
