import { type BucketRef, homesEver } from '../core/bucket.js';
import type { Clock } from '../core/ports/clock.js';
import type { AgedOrder, ReconcileRepository } from '../core/ports/reconcile-repository.js';
import type { ReconcileStore } from '../core/ports/reconcile-store.js';
import type { RepairStore } from '../core/ports/repair-stores.js';
import type { Sale } from '../core/sale.js';
import { rowsOfSale } from './rows-of-sale.js';

/** Access to both sides of the sales that are compared: their buckets in Redis and their rows in MySQL. */
export interface BothSides {
  readonly store: ReconcileStore;
  readonly repairs: RepairStore;
  readonly repository: ReconcileRepository;
  readonly clock: Clock;
}

export function byBucket(
  { saleId }: Sale,
  rows: readonly AgedOrder[],
  bucketsOf: (row: AgedOrder) => readonly number[],
): [BucketRef, AgedOrder[]][] {
  const found = new Map<number, AgedOrder[]>();
  for (const row of rows) {
    for (const bucket of bucketsOf(row)) {
      const ofBucket = found.get(bucket);
      if (ofBucket === undefined) found.set(bucket, [row]);
      else ofBucket.push(row);
    }
  }
  return [...found].map(([bucket, ofBucket]) => [{ saleId, bucket }, ofBucket]);
}

/**
 * Finds markers of a closed sale that no check-back needs any more. A marker stays in the bucket that was the buyer's
 * home when the batch was formed.
 * @param markerAgeMs age of a row after which no check-back needs its marker
 */
export async function* staleMarkers(
  sale: Sale,
  rows: readonly AgedOrder[],
  store: ReconcileStore,
  markerAgeMs: number,
): AsyncGenerator<readonly [ref: BucketRef, batchIds: readonly string[]]> {
  if (sale.state !== 'closed') return;
  for (const [ref, ofBucket] of byBucket(sale, rows, ({ userId }) => homesEver(userId, sale.buckets))) {
    const old = ofBucket.filter(({ ageMs }) => ageMs >= markerAgeMs).map(({ batchId }) => batchId);
    yield [ref, await store.recordedMarkers(ref, [...new Set(old)])];
  }
}

/**
 * @returns the number of removed markers
 * @throws OperationalError
 */
export async function removeStaleMarkers(sale: Sale, sides: BothSides, markerAgeMs: number): Promise<number> {
  let removed = 0;
  for await (const rows of rowsOfSale(sale, sides)) {
    for await (const [ref, batchIds] of staleMarkers(sale, rows, sides.store, markerAgeMs)) {
      removed += await sides.store.removeMarkers(ref, batchIds);
    }
  }
  return removed;
}
