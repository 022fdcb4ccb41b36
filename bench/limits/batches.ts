import { randomUUID } from 'node:crypto';
import { newBatchId, sealBatch, type Batch } from '../../src/core/batch.js';
import { userIdOf } from '../load/buyers.js';

/** A batch as the api forms it, of buyers never seen before. */
export function freshBatch(saleId: string, place: number, size: number): Batch {
  return sealBatch({
    batchId: newBatchId(),
    saleId,
    bucket: 0,
    epoch: 1,
    createdAtMs: Date.now(),
    trace: '',
    purchases: Array.from({ length: size }, (_, index) => ({
      userId: userIdOf(place * size + index),
      requestId: randomUUID(),
      quantity: 1,
    })),
  });
}
