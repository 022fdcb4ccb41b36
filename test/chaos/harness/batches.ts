import { randomBytes } from 'node:crypto';
import { newBatchId, sealBatch, type Batch } from '../../../src/core/batch.js';
import { composeOrderId } from '../../../src/core/order-id.js';
import { brokerOf } from '../../helpers/broker.js';
import { signaturesOf } from '../../helpers/signatures.js';
import { silentLog } from '../../helpers/silent-log.js';
import type { Sale } from '../../../src/core/sale.js';
import { createOrderRepository } from '../../../src/mysql/order-repository.js';
import { createBatchStore } from '../../../src/redis/batch-store.js';
import { bucketKeys } from '../../../src/redis/keys.js';
import { createStockStore } from '../../../src/redis/stock-store.js';
import { createRedriveChannel } from '../../../src/rocketmq/plain-channels.js';
import { userIds } from './buyers.js';
import { expectEqual } from './expect.js';
import { openSale, type SaleParts } from './sales.js';
import { promisedReleasesOf, statesOf } from './sale-state.js';
import type { StackControls } from './stack-controls.js';

// Makes batches by hand, step by step as an api and a worker would, but without these programs.

/** Makes a batch of one unit for each of these buyers, with the key `k1`. */
export const batchOf = (saleId: string, users: readonly string[], batchId = newBatchId()): Batch =>
  sealBatch({
    batchId,
    saleId,
    bucket: 0,
    epoch: 1,
    createdAtMs: Date.now(),
    traceparent: '',
    purchases: users.map((userId) => ({ userId, requestId: 'k1', quantity: 1 })),
  });

/** Takes a unit for each of these buyers. No message follows, so only the re-drive finds the batch. */
export async function deductBatch(
  { redis }: Pick<StackControls, 'redis'>,
  saleId: string,
  users: readonly string[],
): Promise<Batch> {
  const batch = batchOf(saleId, users);
  expectEqual(await createStockStore(redis, silentLog).deduct(batch), { outcome: 'deducted' }, 'deduct');
  return batch;
}

/** Takes a unit for each of these buyers in a batch that not even the re-drive finds: a leak. */
export async function leakBatch(
  stack: Pick<StackControls, 'redis'>,
  saleId: string,
  users: readonly string[],
): Promise<Batch> {
  const batch = await deductBatch(stack, saleId, users);
  await stack.redis.redis.zrem(bucketKeys(batch).pending, batch.batchId);
  return batch;
}

/** Publishes batches as the re-drive does. */
export async function publishBatches({ env }: Pick<StackControls, 'env'>, batches: readonly Batch[]): Promise<void> {
  const channel = await createRedriveChannel({
    ...brokerOf(env),
    signatures: signaturesOf(env),
    log: silentLog,
  });
  try {
    await Promise.all(batches.map((batch) => channel.publish(batch)));
  } finally {
    await channel.close();
  }
}

export interface RecordedBatch {
  readonly batchId: string;
  readonly orderIds: readonly string[];
  /** Buyer of each order. */
  readonly userIds: readonly string[];
}

/** A batch whose units are held and whose order ids are known, but without rows. */
interface HeldBatch extends RecordedBatch {
  record(paymentWindowMs: number): Promise<void>;
  /** Marks it as recorded in Redis. */
  markRecorded(): Promise<void>;
}

/** An id slot that no worker has. */
const SLOT = 255;

/** Deducts and records a batch of `size` buyers. */
export async function recordBatch(
  stack: StackControls,
  saleId: string,
  size: number,
  paymentWindowMs = 900_000,
): Promise<RecordedBatch> {
  const tag = randomBytes(4).toString('hex'); // so that batches of the same millisecond differ
  const users = userIds(size, `${tag}-`);
  const batch = await deductBatch(stack, saleId, users);
  const nowMs = Date.now();
  const held = heldBatch(stack, batch, (nth) => composeOrderId(nowMs, SLOT, users[nth] as string, nth));
  await held.record(paymentWindowMs);
  return held;
}

function heldBatch(stack: StackControls, batch: Batch, orderIdOf: (nth: number) => string): HeldBatch {
  const { batchId, saleId, purchases } = batch;
  const orders = purchases.map((purchase, nth) => ({ orderId: orderIdOf(nth), batch, purchase, failure: null }));
  return {
    batchId,
    orderIds: orders.map(({ orderId }) => orderId),
    userIds: purchases.map(({ userId }) => userId),
    async record(paymentWindowMs): Promise<void> {
      const repository = createOrderRepository(stack.mysql);
      const terms = await repository.termsOf([saleId]);
      const plan = { terms, orders, releases: [], oneByOne: new Set<string>(), paymentWindowMs };
      expectEqual((await repository.write(plan)).outcome, 'written', 'write');
    },
    markRecorded(): Promise<void> {
      const recorded = orders.map(({ orderId, purchase: { userId, requestId } }) => ({
        orderId,
        userId,
        requestId,
        state: 'pending_payment' as const,
      }));
      return createBatchStore(stack.redis).markRecorded([{ batch, orders: recorded }]);
    },
  };
}

const UNPAID_BATCH_SIZE = 500;
/** Another id slot that no worker has. */
const UNPAID_SLOT = 254;

/**
 * Opens a sale that is sold out to these buyers, who do not pay.
 * @returns the sale, and when the last of its orders is due, Unix ms on the clock of the database
 */
export async function soldToUnpaid(
  stack: StackControls,
  users: readonly string[],
  paymentWindowMs: number,
  parts: SaleParts = {},
): Promise<{ readonly sale: Sale; readonly dueMs: number }> {
  const sale = await openSale(stack, { stock: users.length, ...parts });
  const { saleId } = sale;
  const nowMs = Date.now();
  for (let from = 0; from < users.length; from += UNPAID_BATCH_SIZE) {
    const batch = await deductBatch(stack, saleId, users.slice(from, from + UNPAID_BATCH_SIZE));
    const held = heldBatch(stack, batch, (index) => {
      const nth = from + index; // an id has room for 256 orders per millisecond and slot
      return composeOrderId(nowMs - Math.floor(nth / 256), UNPAID_SLOT, users[nth] as string, nth % 256);
    });
    await held.record(paymentWindowMs);
    await held.markRecorded();
  }
  const sql = 'SELECT MAX(expires_at) AS due FROM orders WHERE sale_id = ?';
  const [row] = await stack.mysql.query<{ due: Date }>(sql, [saleId]);
  return { sale, dueMs: (row?.due as Date).getTime() };
}

/** Asserts that every order has expired, and that its units were promised back exactly once. */
export async function expectAllBack(stack: StackControls, saleId: string, count: number): Promise<void> {
  expectEqual(await statesOf(stack, saleId), { expired: count }, 'states of the orders');
  const promised = await promisedReleasesOf(stack, saleId);
  expectEqual(promised.length, count, 'orders promised back');
  expectEqual(new Set(promised).size, count, 'each of them once');
}
