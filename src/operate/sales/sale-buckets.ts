import { type BucketRef, bucketRefsOf, type SaleBuckets } from '../../core/bucket.js';
import { OperationalError } from '../../core/errors.js';
import type { BatchStore } from '../../core/ports/batch-store.js';
import type { BucketStatus, RepairStore } from '../../core/ports/repair-stores.js';
import type { StockStore } from '../../core/ports/stock-store.js';
import type { Bucket } from '../../contract/sales.js';

export interface SaleBucketsPorts {
  readonly stock: StockStore;
  readonly batches: BatchStore;
  readonly repair: RepairStore;
}

/** A bucket whose server does not answer gets an `error`. The others are still read. */
export async function readSaleBuckets(sale: SaleBuckets, ports: SaleBucketsPorts): Promise<Bucket[]> {
  const statuses = await ports.repair.statusOrFault(bucketRefsOf(sale));
  const { saleId } = sale;
  return Promise.all(statuses.map((status, bucket) => readBucket({ saleId, bucket }, status, ports)));
}

async function readBucket(
  ref: BucketRef,
  status: BucketStatus | OperationalError,
  { stock, batches }: SaleBucketsPorts,
): Promise<Bucket> {
  const { bucket } = ref;
  if (status instanceof OperationalError) return unread(bucket, status);
  try {
    const [sale, { batches: pending, oldestMs }] = await Promise.all([
      stock.readSale(ref),
      batches.pendingSummary(ref),
    ]);
    const isLoaded = status.state !== null;
    return {
      bucket,
      state: status.state,
      epoch: isLoaded ? status.epoch : null,
      sameServer: isLoaded ? status.sameServer : null,
      unitsLeft: sale?.unitsLeft ?? null,
      pending,
      pendingOldestMs: pending === 0 ? null : oldestMs,
      error: null,
    };
  } catch (error) {
    if (!(error instanceof OperationalError)) throw error;
    return unread(bucket, error);
  }
}

const UNREAD = { state: null, epoch: null, sameServer: null, unitsLeft: null, pending: null, pendingOldestMs: null };
const unread = (bucket: number, { message }: OperationalError): Bucket => ({ bucket, ...UNREAD, error: message });
