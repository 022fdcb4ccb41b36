import type { AskedBucket, BucketRef, SaleBuckets } from '../bucket.js';
import type { RepairAsks } from './repair-stores.js';
import type { Batch, BatchRef } from '../batch.js';
import type { OperationalError } from '../errors.js';
import type { StoreAnswer, RequestEntry } from '../outcome.js';
import type { Purchase } from '../purchase.js';
import type { StoredSaleState, Sale } from '../sale.js';
import type { BUCKET_EDITED, BucketEdit } from './sale-edits.js';

export interface PrecheckVerdict {
  /** Epoch of the sale, which the batch will carry. 0 if the sale is not loaded. */
  readonly epoch: number;
  /**
   * Units left in the bucket before any purchase of this call. Null if the sale does not sell (it is not loaded, in
   * repair, paused, over, or not yet open).
   */
  readonly unitsLeft: number | null;
  /** Number of buckets of the sale. Null if Redis does not know it. */
  readonly buckets: number | null;
  /** Answers by purchase, in order. Null if the purchase is not refused. */
  readonly answers: readonly (PurchaseAnswer | null)[];
}

/**
 * `outcome_unknown` means that units are held, but a fail-over could still undo that. Only the replica barrier gives
 * this answer, never a script.
 */
export type PurchaseAnswer = StoreAnswer | { readonly outcome: 'outcome_unknown' };

export type DeductVerdict =
  | { readonly outcome: 'deducted' | 'already_deducted' }
  /**
   * At least one purchase was refused, so nothing was taken. Answers by purchase; null for a purchase that was not the
   * cause.
   */
  | { readonly outcome: 'refused'; readonly answers: readonly (PurchaseAnswer | null)[] }
  /** `resolve` came first: this batch will never be deducted. */
  | { readonly outcome: 'aborted' }
  /**
   * Nothing was taken, because the batch was formed in another epoch of the sale, or the sale is not loaded, in repair
   * or needs repair.
   */
  | { readonly outcome: 'stale_epoch' | 'not_warmed' }
  /** The marker says that a later epoch took over the units: the orders will come, but no 202 was given. */
  | { readonly outcome: 'claimed' }
  /** The units are taken, but too few replicas have them: a fail-over could undo it, so no purchase is accepted. */
  | { readonly outcome: 'unreplicated' }
  /**
   * The script failed, and would fail again with this batch. It may have written before the error, so call `resolve`.
   */
  | { readonly outcome: 'errored'; readonly error: OperationalError }
  | { readonly outcome: 'outcome_unknown' };

/**
 * - `deducted`, `aborted`, `claimed`: the content of the marker, which never changes
 * - `outlived`: there is no marker, and the sale has been rebuilt since the batch was formed, so the batch may have
 *   been deducted and its marker lost. Commit it; the worker that records it takes its units again in the current epoch
 *   (protocol rule 13)
 * - `unreplicated`: `deducted`, but too few replicas have it
 * - `no_answer`: there is no marker and none may be written (sale missing, in repair or needs repair)
 * - `outcome_unknown`: Redis did not answer
 */
export type ResolveVerdict =
  | 'deducted'
  | 'aborted'
  | 'claimed'
  | 'outlived'
  | 'unreplicated'
  | 'no_answer'
  | 'outcome_unknown';

/** The entry of a request. Null if the bucket never accepted it; `unsure` if the bucket may have lost entries. */
export type FoundRequest = RequestEntry | null | 'unsure';

export interface StoredSale {
  readonly state: StoredSaleState;
  readonly epoch: number;
  readonly unitsLeft: number;
  readonly opensAtMs: number;
  readonly closesAtMs: number;
  /** Redis time of the answer, Unix ms. */
  readonly nowMs: number;
}

/** Takes the units of a batch, in the three steps for which a purchase waits. */
export interface Reservations {
  /**
   * Checks a batch before it is formed, without changing anything, so that a refusal costs no half message. Purchases
   * are checked in order, so the second purchase of a buyer sees how much of the limit the first has used. Precedence
   * per purchase: `loading`, `replayed` or `request_conflict`, `paused`, `closed`, `not_open`, `limit_reached`,
   * `sold_out`. `sold_out` is about this bucket only: in a sale with several buckets it is not yet an answer to a buyer
   * (src/purchase/place-batch.ts).
   * @throws OperationalError redis; nothing was changed. Not retryable if the script fails with these purchases
   * Source: lua/precheck-4.lua; protocol rule 4
   */
  precheck(ref: AskedBucket, purchases: readonly Purchase[]): Promise<PrecheckVerdict>;

  /**
   * Takes the units of the whole batch or none, and leaves its marker. Sent only once; a lost reply is
   * `outcome_unknown`, so call `resolve`. Never throws. Source: lua/deduct-6.lua; protocol rules 1, 2 and 11
   */
  deduct(batch: Batch): Promise<DeductVerdict>;

  /**
   * Returns the outcome of a batch and makes it final: a batch without a marker becomes `aborted`. For `no_answer`,
   * asks for the repair of the sale. Never throws.
   * @param ref contains the purchases, if they are known, so that log lines name their traces
   * Source: lua/resolve-2.lua; protocol rules 1 and 2
   */
  resolve(ref: BatchRef & Partial<Pick<Batch, 'purchases'>>): Promise<ResolveVerdict>;
}

/** The stock of a sale, bucket by bucket, as buyers see it. Hides keys, scripts and connections. */
export interface StockStore extends Reservations, Pick<RepairAsks, 'askForRepair'> {
  /**
   * Returns the entry of one request. `unsure` if the bucket is missing, in repair or needs repair, or if its sale was
   * resharded: then read MySQL.
   * @throws OperationalError redis. Source: lua/read-request-2.lua; protocol rule 11
   */
  findRequest(ref: AskedBucket, userId: string, requestId: string): Promise<FoundRequest>;

  /**
   * Returns every buyer who ever took units in this bucket, in chunks, even if nothing came of their purchases. A
   * process can then answer `sold_out` from memory without refusing a buyer who repeats an accepted purchase.
   * @throws OperationalError redis
   */
  acceptedBuyers(ref: BucketRef): AsyncIterable<readonly string[]>;

  /**
   * Returns the number of buyers that `acceptedBuyers` would return.
   * @throws OperationalError redis
   */
  acceptedBuyerCount(ref: BucketRef): Promise<number>;

  /**
   * Returns state and stock of one bucket. Null if the bucket is not loaded, or if its sale was resharded.
   * @throws OperationalError redis
   */
  readSale(ref: AskedBucket): Promise<StoredSale | null>;
}

/**
 * - `set`: every bucket now has that state
 * - `not_warmed`: a bucket is not loaded
 * - `repairing`: a bucket is being rebuilt
 * - `closed`: the sale is over for good; a late `open` changes nothing
 */
export type SetStateOutcome = 'set' | 'not_warmed' | 'repairing' | 'closed';

/** Loads a sale into Redis, changes the state of its buckets, edits and removes it. */
export interface SaleStore {
  /**
   * Loads a sale: stock, limits, window, epoch. Never overwrites a loaded sale (`already_warm`).
   * @throws OperationalError redis. Source: lua/warm-2.lua
   */
  warm(sale: Sale): Promise<'warmed' | 'already_warm'>;

  /**
   * Opens, pauses or closes every bucket. Safe to repeat.
   * @throws OperationalError redis
   * Source: lua/set-state-1.lua
   */
  setState(sale: Sale, state: 'warm' | 'open' | 'paused' | 'closed'): Promise<SetStateOutcome>;

  /**
   * Removes a retired or deleted sale, bucket by bucket. Its markers expire by themselves. Safe to repeat.
   * @throws OperationalError redis; some buckets may be removed
   */
  forget(sale: SaleBuckets): Promise<void>;

  /**
   * Adds or takes units of one bucket and sets the end of its window. Takes effect only once per edit and epoch.
   * @throws OperationalError redis; the edit may be made, so repeat it. Source: lua/edit-2.lua
   */
  edit(ref: BucketRef, edit: BucketEdit): Promise<(typeof BUCKET_EDITED)[number]>;
}
