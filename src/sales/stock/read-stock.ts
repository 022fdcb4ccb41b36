import {
  bucketRefsOf,
  openTransfers,
  transfersFingerprint,
  unitsInTransit,
  type UnitTransfer,
  type HomeBucket,
} from '../../core/bucket.js';
import type { BucketState, TransferStore } from '../../core/ports/transfer-store.js';

/** A sale and how many buckets it has. */
export type SaleBuckets = Pick<HomeBucket, 'saleId' | 'buckets'>;

/** Every bucket of a sale, in order, all of one epoch. They were not read at the same moment. */
export interface StockReading {
  readonly epoch: number;
  readonly buckets: readonly BucketState[];
}

/** After so many readings the answer is `moving`: where units move so much, there are some. */
const READINGS_MAX = 5;

/**
 * @returns null when one of the buckets cannot be trusted, or their epochs differ: the sale is being repaired
 * @throws OperationalError redis
 */
export async function readStock(sale: SaleBuckets, store: TransferStore): Promise<StockReading | null> {
  const { buckets } = sale;
  const all = bucketRefsOf(sale).map((ref) => store.read(ref, buckets));
  const read = (await Promise.all(all)).filter((bucket): bucket is BucketState => bucket !== null);
  const epoch = read[0]?.epoch ?? 0;
  const isWhole = read.length === buckets && read.every((bucket) => bucket.epoch === epoch);
  return isWhole ? { epoch, buckets: read } : null;
}

/**
 * How many units a sale has left in all its buckets together. Open transfers are finished first. Two readings between
 * which no unit moved from bucket to bucket are as good as one at a single moment: between them every unit left was in
 * a bucket and was counted there once. Purchases and releases in between count as later.
 * @returns the larger of the two sums; `unsure` when a bucket cannot be trusted, `moving` when units moved each time
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

/** Units in the buckets, without those in transit. */
export const unitsIn = ({ buckets }: StockReading): number =>
  buckets.reduce((sum, { unitsLeft }) => sum + unitsLeft, 0);

/** Finishes all open transfers, also those of other processes. @throws OperationalError redis */
export async function finishAll(saleId: string, { epoch, buckets }: StockReading, store: TransferStore): Promise<void> {
  for (const transfer of openTransfers(buckets)) await finishTransfer(saleId, transfer, epoch, store);
}

/**
 * The last two steps of a transfer, in this order: the source bucket may forget it only when the units have arrived.
 * @returns units left in the target bucket; null when one of the two is locked, and the transfer stays open
 * @throws OperationalError redis; it stays open
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
