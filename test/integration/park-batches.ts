import { randomBytes } from 'node:crypto';
import type { Batch } from '../../src/core/batch.js';
import { GROUPS, TOPICS } from '../../src/core/topics.js';
import { createDeadLetterParking } from '../../src/mysql/dead-letters.js';
import { createBatchStore } from '../../src/redis/batch-store.js';
import { deductBatch } from '../chaos/harness/batches.js';
import type { StackControls } from '../chaos/harness/stack-controls.js';

type Stores = Pick<StackControls, 'redis' | 'mysql'>;

/** Parks a deducted batch, as a worker and the collector would leave it. */
async function parkBatch({ redis, mysql }: Stores, batch: Batch): Promise<void> {
  await createDeadLetterParking(mysql).park({
    messageId: randomBytes(16).toString('hex'),
    group: GROUPS.writer,
    saleId: batch.saleId,
    body: batch.body,
    originTopic: TOPICS.purchase,
    batchId: batch.batchId,
    isBatch: true,
    reason: 'retries_exhausted',
    attempts: 8,
    detail: 'the consumer group gave up on it',
  });
  await createBatchStore(redis).park(batch);
}

/** Deducts a batch of one for each buyer and parks it. */
export async function parkBatches(stack: Stores, saleId: string, users: readonly string[]): Promise<Batch[]> {
  const batches: Batch[] = [];
  for (const userId of users) {
    const batch = await deductBatch(stack, saleId, [userId]);
    await parkBatch(stack, batch);
    batches.push(batch);
  }
  return batches;
}
