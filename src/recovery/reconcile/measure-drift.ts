import type { Sale } from '../../core/sale.js';
import { transfersSeen, unitsInTransit, type BucketTransfers } from '../../core/unit-transfer.js';
import type { ReconcileRepository } from '../../core/ports/reconcile-repository.js';
import type { ReconcileStore } from '../../core/ports/reconcile-store.js';

export interface SaleUnits {
  readonly unitsLeft: number;
  readonly unitsOfBuyers: number;
  /** Stock less units left, in transit between two buckets and of buyers; 0 while all of them are somewhere. */
  readonly difference: number;
  readonly pending: number;
  /** Whether something moved while it was read, or is on its way: then a difference says nothing. */
  readonly moving: boolean;
  /** Units left, bucket by bucket. */
  readonly buckets: readonly number[];
  /** Equal for two measures between which no unit moved from bucket to bucket. */
  readonly transfersSeen: string;
}

export interface DriftPorts {
  readonly store: Pick<ReconcileStore, 'units'>;
  readonly repository: Pick<ReconcileRepository, 'undoneReleases'>;
}

/**
 * Adds up where the units of a sale are. A difference is told only when a second measure says the same, the stock has
 * not moved in between and nothing is on its way: no young batch in `pending`, no release to be done.
 * @returns null when a bucket is not loaded
 * @throws OperationalError
 */
export async function measureDrift(
  sale: Sale,
  ports: DriftPorts,
  { safeAgeMs }: { readonly safeAgeMs: number },
): Promise<SaleUnits | null> {
  const first = await measure(sale, ports, safeAgeMs);
  if (first === null || first.difference === 0) return first === null ? null : { ...first, moving: false };
  if (first.moving || (await ports.repository.undoneReleases(sale.saleId)) > 0) return { ...first, moving: true };
  const second = await measure(sale, ports, safeAgeMs);
  if (second === null) return null;
  const same =
    second.difference === first.difference &&
    second.transfersSeen === first.transfersSeen &&
    second.buckets.every((unitsLeft, bucket) => unitsLeft === first.buckets[bucket]);
  return { ...second, moving: second.moving || !same };
}

async function measure(sale: Sale, { store }: DriftPorts, safeAgeMs: number): Promise<SaleUnits | null> {
  const { saleId, stock } = sale;
  const sum = { unitsLeft: 0, unitsOfBuyers: 0, pending: 0, moving: false };
  const buckets: number[] = [];
  const transfers: BucketTransfers[] = [];
  for (let bucket = 0; bucket < sale.buckets; bucket++) {
    const units = await store.units({ saleId, bucket }, safeAgeMs);
    if (units === null) return null;
    sum.unitsLeft += units.unitsLeft;
    sum.unitsOfBuyers += units.unitsOfBuyers;
    sum.pending += units.pending;
    sum.moving ||= units.moved || units.youngPending > 0;
    buckets.push(units.unitsLeft);
    transfers.push(units.transfers);
  }
  const difference = stock - sum.unitsLeft - unitsInTransit(transfers) - sum.unitsOfBuyers;
  return { ...sum, difference, buckets, transfersSeen: transfersSeen(transfers) };
}
