import type { AskedBucket, BucketRef, SaleBuckets } from '../bucket.js';
import type { RepairAsks } from './repair-stores.js';
import type { Batch, BatchRef } from '../batch.js';
import type { OperationalError } from '../errors.js';
import type { StoreAnswer, RequestEntry } from '../outcome.js';
import type { Purchase } from '../purchase.js';
import type { StoredSaleState, Sale } from '../sale.js';
import type { BUCKET_EDITED, BucketEdit } from './sale-edits.js';

export interface PrecheckVerdict {
  /** Epoch of the sale, to be written into the batch; 0 while the sale is not loaded. */
  readonly epoch: number;
  /**
   * Units left in the bucket before any purchase of this call. Null while the sale does not sell (not loaded, in
   * repair, paused, over, before its window).
   */
  readonly unitsLeft: number | null;
  /** Number of buckets of the sale. Null when Redis does not know. */
  readonly buckets: number | null;
  /** Answers by purchase, in order. Null: not refused. */
  readonly answers: readonly (PurchaseAnswer | null)[];
}

/**
 * `outcome_unknown`: units are held, but a fail-over could still undo that. Only the replica barrier returns this
 * answer, no script.
 */
export type PurchaseAnswer = StoreAnswer | { readonly outcome: 'outcome_unknown' };

export type DeductVerdict =
  | { readonly outcome: 'deducted' | 'already_deducted' }
  /** At least one purchase was refused, so nothing was taken. Answers by purchase; null: not the cause. */
  | { readonly outcome: 'refused'; readonly answers: readonly (PurchaseAnswer | null)[] }
  /** `resolve` came first: this batch will never be deducted. */
  | { readonly outcome: 'aborted' }
  /**
   * The batch was formed in another epoch of the sale, or the sale is not loaded, in repair or needs repair. Nothing
   * was taken.
   */
  | { readonly outcome: 'stale_epoch' | 'not_warmed' }
  /** The marker says that a later epoch took the units over: the orders will come, but no 202 was given. */
  | { readonly outcome: 'claimed' }
  /** The units are taken, but too few replicas know: a fail-over could undo it, so no purchase is accepted. */
  | { readonly outcome: 'unreplicated' }
  /** The script failed, and would fail again with this batch. It may have written before the error: ask `resolve`. */
  | { readonly outcome: 'errored'; readonly error: OperationalError }
  | { readonly outcome: 'outcome_unknown' };

/**
 * - `deducted`, `aborted`, `claimed`: the content of the marker, the same for ever
 * - `outlived`: there is no marker, and the sale was rebuilt since the batch was formed: the batch may have been
 *   deducted, and its marker lost. Commit it; the worker that records it takes its units again in the present epoch
 *   (protocol rule 13)
 * - `unreplicated`: `deducted`, but too few replicas know
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

/** The entry of a request. Null when the bucket never accepted it; `unsure` while the bucket may have lost entries. */
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

/** Takes the units of a batch, in the three steps that a purchase waits for. */
export interface Reservations {
  /**
   * Checks a batch before it is formed, without changing anything, so that a refusal costs no half message. Purchases
   * count in order: the second purchase of a buyer sees the limit used by the first. Precedence per purchase:
   * `loading`, `replayed` or `request_conflict`, `paused`, `closed`, `not_open`, `limit_reached`, `sold_out`.
   * `sold_out` is about this bucket only: in a sale with more buckets it is no answer to a buyer yet
   * (src/purchase/place-batch.ts).
   * @throws OperationalError redis; nothing was changed. Not retryable: the script fails with these purchases
   * Source: lua/precheck-4.lua; protocol rule 4
   */
  precheck(ref: AskedBucket, purchases: readonly Purchase[]): Promise<PrecheckVerdict>;

  /**
   * Takes the units of the whole batch or none, and leaves its marker. Sent only once: a lost reply is
   * `outcome_unknown`, so ask `resolve`. Never throws.
   * Source: lua/deduct-6.lua; protocol rules 1, 2 and 11
   */
  deduct(batch: Batch): Promise<DeductVerdict>;

  /**
   * Returns the outcome of a batch and makes it final: a batch without a marker is `aborted` from now on. `no_answer`
   * asks for the repair of the sale. Never throws.
   * @param ref with its purchases, if known: log lines name their traces
   * Source: lua/resolve-2.lua; protocol rules 1 and 2
   */
  resolve(ref: BatchRef & Partial<Pick<Batch, 'purchases'>>): Promise<ResolveVerdict>;
}

/** The stock of a sale, bucket by bucket, as buyers see it. No key, script or connection crosses this line. */
export interface StockStore extends Reservations, Pick<RepairAsks, 'askForRepair'> {
  /**
   * Returns the entry of one request. `unsure` when the bucket is missing, in repair or needs repair, or its sale was
   * resharded: ask MySQL.
   * @throws OperationalError redis
   * Source: lua/read-request-2.lua; protocol rule 11
   */
  findRequest(ref: AskedBucket, userId: string, requestId: string): Promise<FoundRequest>;

  /**
   * Returns every buyer who ever took units in this bucket, in chunks, whatever became of their purchases. Lets a
   * process answer `sold_out` from memory without refusing a buyer who repeats an accepted purchase.
   * @throws OperationalError redis
   */
  acceptedBuyers(ref: BucketRef): AsyncIterable<readonly string[]>;

  /**
   * Returns the number of buyers that `acceptedBuyers` would return.
   * @throws OperationalError redis
   */
  acceptedBuyerCount(ref: BucketRef): Promise<number>;

  /**
   * Returns state and stock of one bucket. Null when the bucket is not loaded, or its sale was resharded.
   * @throws OperationalError redis
   */
  readSale(ref: AskedBucket): Promise<StoredSale | null>;
}

/**
 * - `set`: every bucket is in that state now
 * - `not_warmed`: a bucket is not loaded
 * - `repairing`: a bucket is being rebuilt
 * - `closed`: the sale is over for good; a late `open` changes nothing
 */
export type SetStateOutcome = 'set' | 'not_warmed' | 'repairing' | 'closed';

/** Loads a sale into Redis, sets the state of its buckets, changes and removes it. */
export interface SaleStore {
  /**
   * Loads a sale: stock, limits, window, epoch. Never overwrites a loaded sale (`already_warm`).
   * @throws OperationalError redis
   * Source: lua/warm-2.lua
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
   * Adds or takes units of one bucket and sets the end of its window, once per edit and epoch.
   * @throws OperationalError redis; the edit may be made, so repeat it
   * Source: lua/edit-2.lua
   */
  edit(ref: BucketRef, edit: BucketEdit): Promise<(typeof BUCKET_EDITED)[number]>;
}
