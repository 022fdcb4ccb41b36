import { newBatchId, sealBatch, type Batch } from '../../../src/core/batch.js';
import { silentLog } from '../../../src/core/ports/log.js';
import { bucketKeys } from '../../../src/redis/keys.js';
import { createStockStore } from '../../../src/redis/stock-store.js';
import { expectEqual } from './expect.js';
import type { StackHands } from './stack-hands.js';

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
