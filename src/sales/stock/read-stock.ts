import {
  bucketRefsOf,
  openTransfers,
  transfersFingerprint,
  unitsInTransit,
  type UnitTransfer,
  type SaleBuckets,
} from '../../core/bucket.js';
import type { BucketState, TransferStore } from '../../core/ports/transfer-store.js';

/** Every bucket of a sale, in order, all of the same epoch. The buckets were not read at the same moment. */
export interface StockReading {
  readonly epoch: number;
  readonly buckets: readonly BucketState[];
}

/** Number of readings after which the answer is `moving`. If units move this much, some must be left. */
const READINGS_MAX = 5;

/** Returns null if a bucket cannot be trusted, or epochs differ in a repair. @throws OperationalError redis */
export async function readStock(sale: SaleBuckets, store: TransferStore): Promise<StockReading | null> {
  const { buckets } = sale;
  const all = bucketRefsOf(sale).map((ref) => store.read(ref, buckets));
  const read = (await Promise.all(all)).filter((bucket): bucket is BucketState => bucket !== null);
  const epoch = read[0]?.epoch ?? 0;
  const isWhole = read.length === buckets && read.every((bucket) => bucket.epoch === epoch);
  return isWhole ? { epoch, buckets: read } : null;
}

/**
 * Counts the units left in all buckets, after finishing open transfers. Two readings equal one at a single moment if no
 * unit changed its bucket in between: every unit left was in the same bucket all that time and counted once.
 * Purchases and releases in between count as later.
 * @returns the larger sum; `unsure` if a bucket cannot be trusted, `moving` if units moved each time
 * @throws OperationalError redis
 */
export async function countUnitsLeft(sale: SaleBuckets, store: TransferStore): Promise<number | 'unsure' | 'moving'> {
  let before = await readStock(sale, store);
  for (let readings = 1; readings < READINGS_MAX; readings++) {
    if (before === null) return 'unsure';
    if (unitsInTransit(before.buckets) > 0) await finishAll(sale.saleId, before, store);
    const after = await readStock(sale, store);
    if (after === null) return 'unsure';
    const stoodStill =
      after.epoch === before.epoch && transfersFingerprint(after.buckets) === transfersFingerprint(before.buckets);
    if (stoodStill && unitsInTransit(after.buckets) === 0) return Math.max(unitsIn(before), unitsIn(after));
    before = after;
  }
  return 'moving';
}

/** Sums the units in the buckets. Units in transit are not counted. */
export const unitsIn = ({ buckets }: StockReading): number =>
  buckets.reduce((sum, { unitsLeft }) => sum + unitsLeft, 0);

/** Finishes all open transfers, of other processes too. @throws OperationalError redis */
export async function finishAll(saleId: string, { epoch, buckets }: StockReading, store: TransferStore): Promise<void> {
  for (const transfer of openTransfers(buckets)) await finishTransfer(saleId, transfer, epoch, store);
}

/**
 * Runs the last two steps of a transfer in order: the source bucket may forget it only after the units have arrived.
 * @returns units left in the target bucket; null if a bucket is locked, and the transfer stays open
 * @throws OperationalError redis; the transfer stays open
 */
export async function finishTransfer(
  saleId: string,
  transfer: UnitTransfer,
  epoch: number,
  store: TransferStore,
): Promise<number | null> {
  const arrived = await store.transferIn(saleId, transfer, epoch);
  if (arrived.outcome === 'unavailable') return null;
  await store.endTransfer(saleId, transfer, epoch);
  return arrived.unitsLeft;
}
