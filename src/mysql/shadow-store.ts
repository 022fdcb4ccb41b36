import type { Batch } from '../core/batch.js';
import type { FailureReason } from '../core/order.js';
import { requestName } from '../core/purchase.js';
import type { NewOrder, OrderRepository, SaleTerms } from '../core/ports/order-repository.js';
import type { PlannedRow, Replay, ShadowStore, WrittenRow } from '../core/ports/shadow.js';
import { amountOf, paymentWindowOf, termsFor } from './insert-orders.js';
import { knex, select } from './knex.js';
import { metadataOf } from './order-metadata.js';
import { createOrderRepository } from './order-repository.js';
import type { MysqlPool } from './pool.js';

/** @param pool may be read-only */
export function createShadowStore(pool: MysqlPool): ShadowStore {
  const orders = createOrderRepository(pool);
  return {
    async rowsOf({ saleId, purchases }): Promise<WrittenRow[]> {
      const rows = await orders.findByPurchases(saleId, purchases);
      if (rows.length === 0) return [];
      const metadata = await metadataOf(
        pool,
        rows.map(({ orderId }) => orderId),
      );
      return rows.map((row) => ({ ...row, metadata: metadata.get(row.orderId) ?? null }));
    },

    async isParked({ messageId, batchId }): Promise<boolean> {
      const named = knex('dead_letters').select('message_id').where({ message_id: messageId });
      if (batchId !== null) void named.orWhere({ batch_id: batchId });
      return (await select(pool, named.limit(1))).length > 0;
    },

    termsOf: (saleId) => orders.termsOf([saleId]),

    async replay(batch, rows, terms): Promise<Replay> {
      const limited = rows.filter((row) => row.batchId === batch.batchId && row.reason === 'limit_reached');
      const userIds = limited.map(({ userId }) => userId);
      const holders = await holdersOf(pool, batch, userIds);
      return replayOf(batch, rows, { terms, holders, orders });
    },
  };
}

/** Returns the buyers that got an order from another batch, even if that order has ended since. */
async function holdersOf(pool: MysqlPool, batch: Batch, userIds: readonly string[]): Promise<Set<string>> {
  if (userIds.length === 0) return new Set();
  const rows = await pool.query<{ readonly user_id: string }>(
    "SELECT DISTINCT user_id FROM orders WHERE sale_id = ? AND user_id IN (?) AND batch_id <> ? AND state <> 'failed'",
    [batch.saleId, [...new Set(userIds)], batch.batchId],
  );
  return new Set(rows.map(({ user_id }) => user_id));
}

interface World {
  readonly terms: ReadonlyMap<string, SaleTerms>;
  readonly holders: Set<string>;
  readonly orders: OrderRepository;
}

/**
 * Reproduces MySQL's answers to the transaction of a batch. Counts rows of other batches as written before. Derives
 * passing facts, such as units left, from the rows that were written.
 */
function replayOf(batch: Batch, rows: readonly WrittenRow[], { terms, holders, orders }: World): Replay {
  const { saleId, batchId } = batch;
  const planned: PlannedRow[] = [];
  const written = new Map(rows.map((row) => [requestName(saleId, row), row]));
  const others = rows.filter((row) => row.batchId !== batchId);
  const rowOf = ({ purchase }: NewOrder): WrittenRow | undefined => written.get(requestName(saleId, purchase));
  let hasLooked = false;
  const repository: OrderRepository = {
    ...orders,
    termsOf: async () => new Map(terms),
    liveBuyers: async () => holders,
    async findByPurchases() {
      hasLooked = true;
      return others;
    },
    async write(plan) {
      const endedAs = (reason: FailureReason): ReadonlySet<string> =>
        new Set(
          plan.orders
            .filter((order) => order.failure === null && rowOf(order)?.reason === reason)
            .map(({ orderId }) => orderId),
        );
      const isTaken = plan.orders.some((order) => others.some((row) => row === rowOf(order)));
      if (isTaken || (!hasLooked && endedAs('limit_reached').size > 0)) return { outcome: 'row_exists' };
      const [surplus, refused] = [endedAs('oversold_guard'), endedAs('refused_by_database')];
      if (surplus.size > 0 && !plan.oneByOne.has(saleId)) return { outcome: 'oversold', saleIds: [saleId] };
      if (refused.size > 0 && plan.singleOut !== true) return { outcome: 'value_refused' };
      for (const { orderId, purchase, failure } of plan.orders) {
        planned.push({
          userId: purchase.userId,
          requestId: purchase.requestId,
          quantity: purchase.quantity,
          amountCents: amountOf(purchase, termsFor(plan, saleId)),
          failure: surplus.has(orderId) ? 'oversold_guard' : refused.has(orderId) ? 'refused_by_database' : failure,
          metadata: purchase.metadata ?? null,
          paymentWindowMs: paymentWindowOf(plan, saleId),
        });
      }
      return { outcome: 'written', surplus, refused };
    },
  };
  return { repository, planned };
}
