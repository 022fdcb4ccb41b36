import { decodeBatch } from '../core/batch.js';
import { OperationalError } from '../core/errors.js';
import { isLive } from '../core/order.js';
import type { KeeperMetrics } from '../core/ports/keeper-metrics.js';
import type { OrderRepository } from '../core/ports/order-repository.js';
import type { BatchStore } from '../core/ports/batch-store.js';
import type { BucketRef } from '../core/ports/stock-store.js';
import type { Job } from '../core/job.js';
import { pendingBuckets, type PendingBucketsPorts } from './pending-buckets.js';

export interface SettleRecordedPorts extends PendingBucketsPorts {
  readonly store: Pick<BatchStore, 'withPending' | 'stalePending' | 'markRecorded'>;
  readonly repository: Pick<OrderRepository, 'findByPurchases'>;
  readonly metrics: KeeperMetrics;
}

export interface SettleRecordedOptions {
  /** Younger batches are still in the hands of a worker. */
  readonly afterMs: number;
  /** Batches of one bucket in one run. */
  readonly max: number;
}

/** Settles what MySQL has and Redis still holds pending: a worker died, or lost Redis, between COMMIT and settle. */
export function markRecorded(ports: SettleRecordedPorts, options: SettleRecordedOptions): Job {
  return {
    name: 'mark-recorded',
    async runOnce(): Promise<void> {
      let failure: OperationalError | null = null;
      for (const ref of await pendingBuckets(ports)) {
        try {
          await markRecordedIn(ref, ports, options);
        } catch (error) {
          if (!(error instanceof OperationalError) || error.dependency !== 'redis') throw error;
          failure ??= error; // a sale that is being rebuilt must not hold up the others
        }
      }
      if (failure !== null) throw failure;
    },
  };
}

async function markRecordedIn(
  ref: BucketRef,
  { store, repository, metrics }: SettleRecordedPorts,
  { afterMs, max }: SettleRecordedOptions,
): Promise<void> {
  for (const { body } of await store.stalePending(ref, afterMs, max)) {
    const decoded = body === null ? null : decodeBatch(body);
    if (decoded?.outcome !== 'decoded') continue; // redrive reports it
    const { batch } = decoded;
    const rows = await repository.findByPurchases(batch.saleId, batch.purchases);
    const own = rows.filter((row) => row.batchId === batch.batchId);
    if (own.length < batch.purchases.length) continue; // not ours alone: the worker decides
    await store.markRecorded([{ batch, orders: own.filter((row) => isLive(row.state)) }]);
    metrics.settledLate(1);
  }
}
