import { randomBytes } from 'node:crypto';
import { type Batch, newBatchId, sealBatch } from '../../../src/core/batch.js';
import { composeOrderId } from '../../../src/core/order-id.js';
import { silentLog } from '../../../src/core/ports/log.js';
import type { Sale } from '../../../src/core/sale.js';
import { createOrderRepository } from '../../../src/mysql/order-repository.js';
import { createBatchStore } from '../../../src/redis/batch-store.js';
import { bucketKeys } from '../../../src/redis/keys.js';
import { createStockStore } from '../../../src/redis/stock-store.js';
import { userIds } from './buyers.js';
import { expectEqual } from './expect.js';
import { openSale } from './sales.js';
import type { StackHands } from './stack-controls.js';

export interface RecordedBatch {
  readonly batchId: string;
  readonly orderIds: readonly string[];
  /** Buyer of each order. */
  readonly userIds: readonly string[];
}

/** Units are taken for it, and its orders have their ids, but no row yet. */
export interface HeldBatch extends RecordedBatch {
  record(paymentWindowMs: number): Promise<void>;
  /** Tells Redis that its orders are there. */
  settle(): Promise<void>;
}

/** Slot of ids that no worker has; a sequence by chance, so that two batches of one millisecond differ. */
const SLOT = 255;

/** Deducts and records a batch of `size` buyers, as api and worker do, without them. */
export async function recordBatch(
  stack: StackHands,
  saleId: string,
  size: number,
  paymentWindowMs = 900_000,
): Promise<RecordedBatch> {
  const held = await holdBatch(stack, saleId, size);
  await held.record(paymentWindowMs);
  return held;
}

/** Deducts a batch of `size` buyers, as an api does; `record` does later what a worker would. */
export async function holdBatch(stack: StackHands, saleId: string, size: number): Promise<HeldBatch> {
  const tag = randomBytes(4).toString('hex');
  const purchases = Array.from({ length: size }, (_, i) => ({
    ...{ userId: `${tag}-${i}`, requestId: 'k1', quantity: 1 },
  }));
  const batch = sealBatch({
    ...{ batchId: newBatchId(), saleId, bucket: 0, epoch: 1 },
    ...{ createdAtMs: Date.now(), trace: '', purchases },
  });
  const { outcome } = await createStockStore(stack.redis, silentLog).deduct(batch);
  if (outcome !== 'deducted') throw new Error(`deduct: ${outcome}`);
  const nowMs = Date.now();
  const orders = purchases.map((purchase, i) => ({
    ...{ orderId: composeOrderId(nowMs, SLOT, purchase.userId, i), batch, purchase, failure: null },
  }));
  return {
    batchId: batch.batchId,
    orderIds: orders.map(({ orderId }) => orderId),
    userIds: purchases.map(({ userId }) => userId),
    async record(paymentWindowMs): Promise<void> {
      const repository = createOrderRepository(stack.mysql);
      const terms = await repository.termsOf([saleId]);
      const written = await repository.write({
        terms,
        orders,
        releases: [],
        oneByOne: new Set<string>(),
        paymentWindowMs,
      });
      if (written.outcome !== 'written') throw new Error(`write: ${written.outcome}`);
    },
    settle(): Promise<void> {
      const settled = orders.map(({ orderId, purchase: { userId, requestId } }) => ({
        orderId,
        userId,
        requestId,
        state: 'pending_payment' as const,
      }));
      return createBatchStore(stack.redis).markRecorded([{ batch, orders: settled }]);
    },
  };
}

/** Takes a unit for each of these buyers, as an api does; no message follows, so only the re-drive knows of the batch. */
export async function deductBatch(
  { redis }: Pick<StackHands, 'redis'>,
  saleId: string,
  userIds: readonly string[],
): Promise<Batch> {
  const batch = sealBatch({
    ...{ batchId: newBatchId(), saleId, bucket: 0, epoch: 1 },
    ...{
      createdAtMs: Date.now(),
      trace: '',
      purchases: userIds.map((userId) => ({ userId, requestId: 'k1', quantity: 1 })),
    },
  });
  expectEqual(await createStockStore(redis, silentLog).deduct(batch), { outcome: 'deducted' }, 'deduct');
  return batch;
}

/** The same, and not even the re-drive knows of it: a leak. */
export async function leakBatch(
  stack: Pick<StackHands, 'redis'>,
  saleId: string,
  userIds: readonly string[],
): Promise<Batch> {
  const batch = await deductBatch(stack, saleId, userIds);
  await stack.redis.redis.zrem(bucketKeys(batch).pending, batch.batchId);
  return batch;
}

const BATCH = 500;
/** Of a worker slot that no worker of a test run reaches. */
const UNPAID_SLOT = 254;

/**
 * A sale that is sold out to buyers who do not pay: deducted, recorded and settled with the real ledger and the real
 * writer, without the programs in between.
 * @returns when the last of its orders is due, Unix ms on the clock of the database
 */
export async function soldToUnpaid(
  stack: StackHands,
  { count, paymentWindowMs }: { readonly count: number; readonly paymentWindowMs: number },
): Promise<{ readonly sale: Sale; readonly saleId: string; readonly dueMs: number }> {
  const sale = await openSale(stack, { stock: count });
  const { saleId } = sale;
  const store = createStockStore(stack.redis, silentLog);
  const settlement = createBatchStore(stack.redis);
  const repository = createOrderRepository(stack.mysql);
  const terms = await repository.termsOf([saleId]);
  const nowMs = Date.now();
  const users = userIds(count);
  for (let from = 0; from < count; from += BATCH) {
    const purchases = users.slice(from, from + BATCH).map((userId) => ({ userId, requestId: 'k1', quantity: 1 }));
    const batch = sealBatch({
      ...{ batchId: newBatchId(), saleId, bucket: 0, epoch: 1 },
      ...{ createdAtMs: nowMs, trace: '', purchases },
    });
    expectEqual(await store.deduct(batch), { outcome: 'deducted' }, 'deduct');
    const orders = purchases.map((purchase, index) => {
      const nth = from + index;
      const orderId = composeOrderId(nowMs - Math.floor(nth / 256), UNPAID_SLOT, purchase.userId, nth % 256);
      return { orderId, batch, purchase, failure: null };
    });
    const plan = { terms, orders, releases: [], oneByOne: new Set<string>(), paymentWindowMs };
    expectEqual((await repository.write(plan)).outcome, 'written', 'write');
    const settled = orders.map(({ orderId, purchase: { userId, requestId } }) => ({
      userId,
      requestId,
      orderId,
      state: 'pending_payment' as const,
    }));
    await settlement.markRecorded([{ batch, orders: settled }]);
  }
  const [row] = await stack.mysql.query<{ due: Date }>('SELECT MAX(expires_at) AS due FROM orders WHERE sale_id = ?', [
    saleId,
  ]);
  return { sale, saleId, dueMs: (row?.due as Date).getTime() };
}

/** How many orders of a sale are in each state. */
export async function statesOf({ mysql }: Pick<StackHands, 'mysql'>, saleId: string): Promise<Record<string, number>> {
  const rows = await mysql.query<{ state: string; orders: string }>(
    'SELECT state, COUNT(*) AS orders FROM orders WHERE sale_id = ? GROUP BY state',
    [saleId],
  );
  return Object.fromEntries(rows.map(({ state, orders }) => [state, Number(orders)]));
}

/** Σ sold is 0, every unit is in Redis again, and each order was promised back once. */
export async function expectAllBack(stack: StackHands, saleId: string, count: number): Promise<void> {
  expectEqual(await statesOf(stack, saleId), { expired: count }, 'states of the orders');
  const rows = await stack.mysql.query<{ payload: string }>(
    "SELECT payload FROM outbox WHERE kind = 'release' AND payload LIKE ?",
    [`%"saleId":"${saleId}"%`],
  );
  const promised = rows.flatMap(({ payload }) => JSON.parse(payload) as { orderId: string }[]);
  expectEqual(promised.length, count, 'orders promised back');
  expectEqual(new Set(promised.map(({ orderId }) => orderId)).size, count, 'each of them once');
}
