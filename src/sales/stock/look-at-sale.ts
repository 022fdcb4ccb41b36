import {
  openTransfers,
  transfersFingerprint,
  unitsInTransit,
  type UnitTransfer,
  type HomeBucket,
} from '../../core/bucket.js';
import type { BucketState, TransferStore } from '../../core/ports/transfer-store.js';

/** A sale and how many buckets it has. */
export type SaleBuckets = Pick<HomeBucket, 'saleId' | 'buckets'>;

/** Every bucket of a sale, in their order, all of one epoch. Each was read in a moment of its own. */
export interface SaleLook {
  readonly epoch: number;
  readonly buckets: readonly BucketState[];
}

/** Pairs of looks before nobody can say how many units there are: where units move so much, there are some. */
const LOOKS_MAX = 5;

/**
 * @returns null when one of the buckets cannot be trusted, or their epochs differ: the sale is being repaired
 * @throws OperationalError redis
 */
export async function lookAtSale({ saleId, buckets }: SaleBuckets, store: TransferStore): Promise<SaleLook | null> {
  const all = Array.from({ length: buckets }, (_, bucket) => store.read({ saleId, bucket }, buckets));
  const looks = (await Promise.all(all)).filter((look): look is BucketState => look !== null);
  const epoch = looks[0]?.epoch ?? 0;
  const isWhole = looks.length === buckets && looks.every((look) => look.epoch === epoch);
  return isWhole ? { epoch, buckets: looks } : null;
}

/**
 * How many units a sale has left in all its buckets together. What is found on its way is brought to its end first; then
 * two looks between which nothing has moved from bucket to bucket are one true look: in the moment between them every unit
 * that was left stood in a bucket, and was counted there once. Purchases and releases meanwhile only count as later.
 * @returns the larger of the two sums; `unsure` when a bucket cannot be trusted, `moving` when units moved each time
 * @throws OperationalError redis
 */
export async function countUnitsLeft(sale: SaleBuckets, store: TransferStore): Promise<number | 'unsure' | 'moving'> {
  let before = await lookAtSale(sale, store);
  for (let looks = 1; looks < LOOKS_MAX; looks++) {
    if (before === null) return 'unsure';
    if (unitsInTransit(before.buckets) > 0) await finishAll(sale.saleId, before, store);
    const after = await lookAtSale(sale, store);
    if (after === null) return 'unsure';
    const stoodStill =
      after.epoch === before.epoch && transfersFingerprint(after.buckets) === transfersFingerprint(before.buckets);
    if (stoodStill && unitsInTransit(after.buckets) === 0) return Math.max(unitsIn(before), unitsIn(after));
    before = after;
  }
  return 'moving';
}

/** Units that stand in a bucket. */
export const unitsIn = ({ buckets }: SaleLook): number => buckets.reduce((sum, { unitsLeft }) => sum + unitsLeft, 0);

/** Brings everything that is on its way to its end, whoever began it. @throws OperationalError redis */
export async function finishAll(saleId: string, { epoch, buckets }: SaleLook, store: TransferStore): Promise<void> {
  for (const transfer of openTransfers(buckets)) await finishTransfer(saleId, transfer, epoch, store);
}

/**
 * The last two steps of a transfer, in this order: the lender may forget it only when the units have arrived.
 * @returns units left in the bucket that got them; null when one of the two is shut, and it stays open
 * @throws OperationalError redis; it stays open
 */
export async function finishTransfer(
  saleId: string,
  transfer: UnitTransfer,
  epoch: number,
  store: Pick<TransferStore, 'transferIn' | 'endTransfer'>,
): Promise<number | null> {
  const borrowed = await store.transferIn(saleId, transfer, epoch);
  if (borrowed.outcome === 'unavailable') return null;
  await store.endTransfer(saleId, transfer, epoch);
  return borrowed.unitsLeft;
}
