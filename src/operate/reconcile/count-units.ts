import { type BucketTransfers, transfersFingerprint, unitsInTransit } from '../../core/bucket.js';
import type { ReconcileStore } from '../../core/ports/reconcile-store.js';
import type { Sale } from '../../core/sale.js';
import type { BothSides } from '../../recovery/stale-markers.js';

export interface SaleUnits {
  readonly unitsLeft: number;
  readonly unitsOfBuyers: number;
  /** Stock minus units left, units in transit between buckets and buyers' units. 0 if all are accounted for. */
  readonly difference: number;
  readonly pending: number;
  /** Whether units moved during the count or are in transit. A difference then means nothing. */
  readonly moving: boolean;
  /** Units left per bucket. */
  readonly buckets: readonly number[];
  /** Equal for two counts if no unit moved between buckets in the meantime. */
  readonly transfersSeen: string;
}

/**
 * A difference counts only if a second count agrees, the stock is unchanged, and nothing is under way: no young batch
 * in `pending`, no release, no restock. @returns null if a bucket is not loaded. @throws OperationalError
 */
export async function measureDrift(
  sale: Sale,
  { store, repository }: BothSides,
  { safeAgeMs }: { readonly safeAgeMs: number },
): Promise<SaleUnits | null> {
  const first = await measure(sale, store, safeAgeMs);
  if (first === null || first.difference === 0) return first === null ? null : { ...first, moving: false };
  if (first.moving || (await repository.undoneReleases(sale.saleId)) > 0) return { ...first, moving: true };
  const second = await measure(sale, store, safeAgeMs);
  if (second === null) return null;
  const same =
    second.difference === first.difference &&
    second.transfersSeen === first.transfersSeen &&
    second.buckets.every((unitsLeft, bucket) => unitsLeft === first.buckets[bucket]);
  return { ...second, moving: second.moving || !same || (await repository.isRestocked(sale)) };
}

async function measure(sale: Sale, store: ReconcileStore, safeAgeMs: number): Promise<SaleUnits | null> {
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
  return { ...sum, difference, buckets, transfersSeen: transfersFingerprint(transfers) };
}

/** Number of counts that must agree on a difference. */
const COUNTS = 2;

/**
 * Compares buyers' units with the requests that hold them (I4). If they differ, the drift cannot tell the correct
 * stock. @returns the buyers' surplus; 0 if both agree; null if units moved. @throws OperationalError
 */
export async function buyersTooMany(
  sale: Sale,
  sides: BothSides,
  limits: { readonly safeAgeMs: number },
  onPage: () => Promise<void> = () => Promise.resolve(),
): Promise<number | null> {
  let found: number | null = null;
  for (let counted = 0; counted < COUNTS; counted++) {
    const before = await measureDrift(sale, sides, limits);
    const held = await countHeld(sale, sides.store, onPage);
    const after = await measureDrift(sale, sides, limits);
    if (before === null || after === null || !stoodStill(before, after)) return null;
    const tooMany = after.unitsOfBuyers - held;
    if (tooMany === 0) return 0;
    if (found !== null && found !== tooMany) return null;
    found = tooMany;
  }
  return found;
}

/** Whether no unit has moved between the two counts. */
export function stoodStill(before: SaleUnits, after: SaleUnits): boolean {
  return (
    before.unitsOfBuyers === after.unitsOfBuyers &&
    before.buckets.every((unitsLeft, bucket) => unitsLeft === after.buckets[bucket])
  );
}

async function countHeld(sale: Sale, store: ReconcileStore, onPage: () => Promise<void>): Promise<number> {
  let held = 0;
  for (let bucket = 0; bucket < sale.buckets; bucket++) {
    const units = new Map<string, number>(); // a scan may return a request twice
    for await (const page of store.requests({ saleId: sale.saleId, bucket })) {
      for (const [key, { state, quantity }] of page) units.set(key, state === 'released' ? 0 : quantity);
      await onPage();
    }
    for (const quantity of units.values()) held += quantity;
  }
  return held;
}
