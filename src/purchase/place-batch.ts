import { newBatchId, sealBatch, type Batch } from '../core/batch.js';
import { assert, assertNever, OperationalError } from '../core/errors.js';
import type { PurchaseOutcome } from '../core/outcome.js';
import type { Purchase } from '../core/purchase.js';
import { traceIdsOf } from '../core/trace-context.js';
import type { Clock } from '../core/ports/clock.js';
import type { HalfMessage, PurchaseChannel } from '../core/ports/channels.js';
import type { Log } from '../core/ports/log.js';
import type { DeductVerdict, PrecheckVerdict, Reservations } from '../core/ports/stock-store.js';
import type { HomeBucket } from '../core/bucket.js';
import type { SaleSnapshots } from '../sales/sale-snapshots.js';
import type { Gathered, UnitFetcher, WantedUnits } from '../sales/stock/gather-units.js';
import type { BatchVerdict } from './metrics.js';
import type { SoldOutFlags } from './sold-out-flags.js';

export interface PlaceBatchPorts {
  readonly store: Reservations;
  readonly channel: PurchaseChannel;
  readonly units: UnitFetcher;
  readonly flags: SoldOutFlags;
  readonly snapshots: SaleSnapshots;
  readonly clock: Clock;
  readonly log: Log;
}

/** No units were taken. The purchase may join the next batch, whose precheck gives the current answer. */
export const AGAIN = { outcome: 'again' } as const;
type PlaceResult = PurchaseOutcome | typeof AGAIN;
/** Receives the result of the purchase at `index`. Called once per purchase, as soon as its result is known. */
export type Deliver = (index: number, result: PlaceResult) => void;

const SOLD_OUT: PlaceResult = { outcome: 'sold_out' };
const NOT_ENOUGH_LEFT: PlaceResult = { outcome: 'not_enough_left' };
const REFUSED_BY_STORE: PlaceResult = { outcome: 'refused_by_store' };

/** Pauses before each `resolve` after a lost reply. The later ones leave time to reconnect. */
const RESOLVE_PAUSES_MS = [0, 100, 400];

/**
 * The main path: places the purchases of one bucket and delivers their results.
 *
 * 1. precheck answers repeated keys and refuses purchases that have no chance, before anything is sent
 * 2. the other purchases become a batch: half message, deduct, commit or rollback (`holdUnits`)
 * 3. if the bucket has too few units, units are fetched from the other buckets of the sale
 * 4. the sold-out flags and the snapshots learn what precheck has said about the sale
 *
 * If Redis refuses a whole batch for good, its purchases are placed separately (`placeApart`). Source: protocol rules 1
 * to 4
 *
 * @param traceparent of the span that places the batch, or an empty string
 * @returns how the batch ended. By then all results are delivered, and the batch is committed or rolled back.
 * @throws OperationalError if a precheck does not reach Redis; purchases without a result took no units
 */
export async function placeBatch(
  bucket: HomeBucket,
  purchases: readonly Purchase[],
  traceparent: string,
  deliver: Deliver,
  ports: PlaceBatchPorts,
): Promise<BatchVerdict> {
  const askedAtMs = ports.clock.monotonicMs();
  const precheck = await precheckAll(bucket, purchases, ports);
  if (precheck instanceof OperationalError) {
    return placeApart(bucket, purchases, precheck, traceparent, deliver, ports);
  }

  assert(precheck.answers.length === purchases.length, 'precheck answers each purchase once');
  const survivors: number[] = [];
  /** Purchases for which this bucket has too few units. */
  const emptied: number[] = [];
  const isOneOfMany = bucket.buckets > 1;
  const answer = (index: number, result: PlaceResult): void => {
    if (result.outcome !== 'sold_out') deliver(index, result);
    else if (isOneOfMany) emptied.push(index);
    else deliver(index, tooFewLeft(purchases[index] as Purchase, precheck.unitsLeft ?? 0));
  };
  precheck.answers.forEach((refusal, index) => {
    if (refusal === null) survivors.push(index);
    else answer(index, refusal);
  });

  let verdict: BatchVerdict = 'all_answered_by_precheck';
  if (survivors.length > 0) {
    const batch = formBatch(bucket, precheck.epoch, traceparent, ports.clock.nowMs(), purchases, survivors);
    const indexOf = (place: number): number => survivors[place] as number;
    const held = await holdUnits(batch, (place, result) => answer(indexOf(place), result), ports);
    if (held instanceof OperationalError) {
      const deliverAs: Deliver = (place, result) => deliver(indexOf(place), result);
      verdict = await placeApart(bucket, batch.purchases, held, traceparent, deliverAs, ports);
    } else verdict = held;
  } else if (isResharded(bucket, precheck.buckets)) {
    // The sale was split in the meantime: precheck answers `loading` to every purchase.
    await ports.snapshots.forget(bucket.saleId);
  }

  // An empty bucket says nothing about a sale with several buckets.
  let unitsLeft = isOneOfMany && precheck.unitsLeft === 0 ? null : precheck.unitsLeft;
  if (emptied.length > 0) {
    const fetched = await fetchFromOtherBuckets(bucket, purchases, emptied, deliver, ports.units);
    unitsLeft = fetched.unitsLeft ?? unitsLeft;
    if (fetched.goAgain && verdict === 'all_answered_by_precheck') verdict = 'bucket_empty';
  }
  ports.flags.observe(bucket, unitsLeft, askedAtMs);
  return verdict;
}

/**
 * @returns an error of Redis that is certain to repeat
 * @throws any other error
 */
async function precheckAll(
  bucket: HomeBucket,
  purchases: readonly Purchase[],
  { store }: PlaceBatchPorts,
): Promise<PrecheckVerdict | OperationalError> {
  try {
    return await store.precheck(bucket, purchases);
  } catch (error) {
    if (error instanceof OperationalError && !error.retryable) return error;
    throw error;
  }
}

/**
 * Places purchases that Redis refuses together. Halves the batch until each refused purchase is alone; only its buyer
 * gets a refusal. Both halves run at once, so a batch of 192 occupies its slot for the time of nine batches at most.
 * Source: docs/decisions/0058-a-refused-purchase-fails-alone.md
 * @throws OperationalError like `placeBatch`, after both halves have ended, because they deliver results until then
 */
async function placeApart(
  bucket: HomeBucket,
  purchases: readonly Purchase[],
  error: OperationalError,
  traceparent: string,
  deliver: Deliver,
  ports: PlaceBatchPorts,
): Promise<BatchVerdict> {
  if (purchases.length === 1) {
    const { saleId } = bucket;
    ports.log.error(
      { err: error, saleId, traceIds: traceIdsOf(purchases) },
      'Redis refuses a purchase, even alone in its batch',
    );
    deliver(0, REFUSED_BY_STORE);
    return 'refused_by_store';
  }
  const middle = Math.ceil(purchases.length / 2);
  const deliverRest: Deliver = (place, result) => deliver(middle + place, result);
  const halves = [
    placeBatch(bucket, purchases.slice(0, middle), traceparent, deliver, ports),
    placeBatch(bucket, purchases.slice(middle), traceparent, deliverRest, ports),
  ];
  await Promise.allSettled(halves);
  await Promise.all(halves);
  return 'refused_by_store';
}

/**
 * Runs the transaction of one batch: half message, deduct, commit or rollback.
 * @returns an error if Redis refuses this batch for good; then no units were taken and no result was delivered
 */
async function holdUnits(
  batch: Batch,
  deliver: Deliver,
  ports: PlaceBatchPorts,
): Promise<BatchVerdict | OperationalError> {
  const deliverAll = (result: PlaceResult): void => batch.purchases.forEach((_, place) => deliver(place, result));
  const { batchId } = batch;
  const unknown: PlaceResult = { outcome: 'outcome_unknown', batchId };

  const half = await ports.channel.sendHalf(batch);
  if (half === 'unavailable' || half === 'outcome_unknown') {
    deliverAll(half === 'unavailable' ? { outcome: half } : unknown);
    return half;
  }
  const verdict = await deduct(batch, ports);
  switch (verdict.outcome) {
    case 'deducted':
    case 'already_deducted':
      deliverAll({ outcome: 'accepted', batchId }); // the units are held, even if the commit fails
      await half.commit();
      return 'accepted';
    case 'refused': {
      assert(verdict.answers.length === batch.purchases.length, 'deduct answers each purchase once');
      const isSure = await rollBack(half, batch, ports);
      batch.purchases.forEach((_, place) => deliver(place, isSure ? (verdict.answers[place] ?? AGAIN) : unknown));
      return isSure ? 'refused' : 'outcome_unknown';
    }
    case 'aborted': {
      const isSure = await rollBack(half, batch, ports);
      deliverAll(isSure ? AGAIN : unknown); // the next precheck says why each buyer gets nothing
      return isSure ? 'aborted' : 'outcome_unknown';
    }
    case 'errored':
      if (await rollBack(half, batch, ports)) return verdict.error;
      deliverAll(unknown);
      return 'outcome_unknown';
    case 'stale_epoch':
    case 'not_warmed':
      // There is no marker, so an earlier check-back may have caused the broker to commit the batch.
      deliverAll(unknown);
      await half.rollback();
      return 'outcome_unknown';
    case 'claimed': // orders will follow, but one may have lost its unit: no 202
    case 'unreplicated': // the broker will remember the batch, but until then a failover could forget it: no 202
      deliverAll(unknown);
      await half.commit();
      return 'outcome_unknown';
    case 'outcome_unknown': // neither commit nor rollback: the broker will ask, and the marker will answer
      deliverAll(unknown);
      return 'outcome_unknown';
    default:
      return assertNever(verdict);
  }
}

function formBatch(
  { saleId, bucket }: HomeBucket,
  epoch: number,
  traceparent: string,
  createdAtMs: number,
  purchases: readonly Purchase[],
  survivors: readonly number[],
): Batch {
  return sealBatch({
    batchId: newBatchId(),
    saleId,
    bucket,
    epoch,
    createdAtMs,
    traceparent,
    purchases:
      survivors.length === purchases.length ? purchases : survivors.map((index) => purchases[index] as Purchase),
  });
}

/** Deducts once. After a lost reply or a failed script, the marker tells what happened. */
async function deduct(batch: Batch, { store, clock }: PlaceBatchPorts): Promise<DeductVerdict> {
  const verdict = await store.deduct(batch);
  if (verdict.outcome !== 'outcome_unknown' && verdict.outcome !== 'errored') return verdict;
  for (const pauseMs of RESOLVE_PAUSES_MS) {
    if (pauseMs > 0) await clock.sleep(pauseMs);
    const resolved = await store.resolve(batch);
    if (resolved === 'no_answer' || resolved === 'outlived') break; // the broker asks when the extent of the loss is known
    if (resolved === 'aborted' && verdict.outcome === 'errored') return verdict;
    if (resolved !== 'outcome_unknown') return { outcome: resolved };
  }
  return { outcome: 'outcome_unknown' };
}

/**
 * Drops the half message of a batch that took no units. A buyer may be refused or placed again only once the broker
 * confirms the rollback and the marker still says `aborted`. If Redis lost the marker, a check-back may have committed
 * the batch, and the broker confirms even a late rollback (protocol rule 3).
 * @returns whether the batch certainly creates no order
 */
async function rollBack(half: HalfMessage, batch: Batch, { store }: PlaceBatchPorts): Promise<boolean> {
  return (await half.rollback()) && (await store.resolve(batch)) === 'aborted';
}

/**
 * Fetches units from the other buckets and places the purchases again. Answers `sold_out` only if all buckets together
 * have too few units.
 * @param emptied indexes of the purchases; each gets its result
 * @returns units left in all buckets (null if not counted) and whether any purchase is placed again
 */
async function fetchFromOtherBuckets(
  home: HomeBucket,
  purchases: readonly Purchase[],
  emptied: readonly number[],
  deliver: Deliver,
  units: UnitFetcher,
): Promise<{ readonly unitsLeft: number | null; readonly goAgain: boolean }> {
  const deliverAll = (result: PlaceResult): void => emptied.forEach((index) => deliver(index, result));
  const quantityOf = (index: number): number => (purchases[index] as Purchase).quantity;
  const quantities = emptied.map(quantityOf);
  const wanted = { least: Math.min(...quantities), all: quantities.reduce((sum, quantity) => sum + quantity, 0) };

  const gathered = await fetchUnits(units, home, wanted);
  switch (gathered.outcome) {
    case 'gathered':
      deliverAll(AGAIN);
      return { unitsLeft: null, goAgain: true };
    case 'counted': {
      const { unitsLeft } = gathered;
      for (const index of emptied) {
        const purchase = purchases[index] as Purchase;
        deliver(index, purchase.quantity > unitsLeft ? tooFewLeft(purchase, unitsLeft) : AGAIN);
      }
      return { unitsLeft, goAgain: wanted.least <= unitsLeft };
    }
    case 'unsure':
      deliverAll({ outcome: 'loading' });
      return { unitsLeft: null, goAgain: false };
    case 'moving':
      deliverAll({ outcome: 'overloaded' });
      return { unitsLeft: null, goAgain: false };
    case 'unavailable':
      deliverAll({ outcome: 'unavailable' });
      return { unitsLeft: null, goAgain: false };
    default:
      return assertNever(gathered);
  }
}

/** A buyer who wants more units than are left may still get fewer. */
const tooFewLeft = ({ quantity }: Purchase, unitsLeft: number): PlaceResult =>
  quantity > 1 && unitsLeft > 0 ? NOT_ENOUGH_LEFT : SOLD_OUT;

/** Returns `unavailable` if Redis is down, so purchases that were already answered keep their answers. */
async function fetchUnits(
  units: UnitFetcher,
  home: HomeBucket,
  wanted: WantedUnits,
): Promise<Gathered | { readonly outcome: 'unavailable' }> {
  try {
    return await units.fetch(home, wanted);
  } catch (error) {
    if (error instanceof OperationalError) return { outcome: 'unavailable' };
    throw error;
  }
}

/**
 * Whether the sale has more buckets than the snapshot says. Buckets only increase: a bucket that reports fewer has not
 * been reached by the reshard yet.
 */
function isResharded(bucket: HomeBucket, buckets: number | null): boolean {
  return buckets !== null && buckets > bucket.buckets;
}
