import { randomBytes } from 'node:crypto';
import { newBatchId, sealBatch } from '../../../src/core/batch.js';
import { composeOrderId } from '../../../src/core/order-id.js';
import { createOrderRepository } from '../../../src/mysql/order-repository.js';
import { silentLog } from '../../../src/core/ports/log.js';
import { createBatchStore } from '../../../src/redis/batch-store.js';
import { createStockStore } from '../../../src/redis/stock-store.js';
import type { StackHands } from './stack-hands.js';

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
      const settled = orders.map(({ orderId, purchase: { userId, requestId } }) => ({ orderId, userId, requestId }));
      return createBatchStore(stack.redis).markRecorded([{ batch, orders: settled }]);
    },
  };
}
