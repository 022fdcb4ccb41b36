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
  /** Units in the bucket before this call. Null unless it sells: loaded, whole, within its window and not paused. */
  readonly unitsLeft: number | null;
  /** Number of buckets of the sale. Null if Redis does not know it. */
  readonly buckets: number | null;
  /** Answers by purchase, in order. Null if the purchase is not refused. */
  readonly answers: readonly (PurchaseAnswer | null)[];
}

/** `outcome_unknown`: units are held, but a fail-over could undo it. Only from the replica barrier, never a script. */
export type PurchaseAnswer = StoreAnswer | { readonly outcome: 'outcome_unknown' };

export type DeductVerdict =
  | { readonly outcome: 'deducted' | 'already_deducted' }
  /** At least one purchase was refused, so nothing was taken. Null for a purchase that was not the cause. */
  | { readonly outcome: 'refused'; readonly answers: readonly (PurchaseAnswer | null)[] }
  /** `resolve` came first: this batch will never be deducted. */
  | { readonly outcome: 'aborted' }
  /** Nothing was taken: the batch is of another epoch, or the sale is not loaded, is in repair or needs repair. */
  | { readonly outcome: 'stale_epoch' | 'not_warmed' }
  /** The marker says that a later epoch took over the units: the orders will come, but no 202 was given. */
  | { readonly outcome: 'claimed' }
  /** The units are taken, but too few replicas have them. A fail-over could undo it, so nothing is accepted. */
  | { readonly outcome: 'unreplicated' }
  /** The script would fail again with this batch. It may have written before the error, so call `resolve`. */
  | { readonly outcome: 'errored'; readonly error: OperationalError }
  | { readonly outcome: 'outcome_unknown' };

/**
 * - `deducted`, `aborted`, `claimed`: the marker, which never changes
 * - `outlived`: no marker, and the sale was rebuilt since the batch was formed, so its deduct and marker may be lost.
 *   Commit it; the worker takes its units again in the current epoch (protocol rule 13)
 * - `unreplicated`: `deducted`, but too few replicas have it
 * - `no_answer`: no marker, and none may be written (sale missing, in repair or in need of repair)
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
   * Checks a batch before it is formed, so a refusal costs no half message. Changes nothing. Checks purchases in order:
   * the second of a buyer sees how much of the limit the first has used. Precedence: `loading`, `replayed` or
   * `request_conflict`, `paused`, `closed`, `not_open`, `limit_reached`, `sold_out`. `sold_out` is about this bucket
   * only: with several buckets, it is no answer to a buyer yet (src/purchase/place-batch.ts). Source:
   * lua/precheck-4.lua; protocol rule 4
   * @throws OperationalError redis; not retryable if the script fails with these purchases
   */
  precheck(ref: AskedBucket, purchases: readonly Purchase[]): Promise<PrecheckVerdict>;

  /**
   * Takes the units of the whole batch or none, and leaves its marker. Sent only once; a lost reply is
   * `outcome_unknown`: call `resolve`. Never throws. Source: lua/deduct-6.lua; protocol rules 1, 2 and 11
   */
  deduct(batch: Batch): Promise<DeductVerdict>;

  /**
   * Returns the outcome of a batch and makes it final: without a marker it becomes `aborted`. For `no_answer`, asks for
   * the repair of the sale. Never throws. Source: lua/resolve-2.lua; protocol rules 1 and 2
   * @param ref with the purchases, if known, for the traces in log lines
   */
  resolve(ref: BatchRef & Partial<Pick<Batch, 'purchases'>>): Promise<ResolveVerdict>;
}

/** The stock of a sale by bucket, as buyers see it. Hides keys and connections. Reads throw OperationalError redis. */
export interface StockStore extends Reservations, Pick<RepairAsks, 'askForRepair'> {
  /**
   * Returns `unsure` if the bucket is missing, is in repair or needs repair, or if the sale was resharded: then read
   * MySQL. Source: lua/read-request-2.lua; protocol rule 11
   */
  findRequest(ref: AskedBucket, userId: string, requestId: string): Promise<FoundRequest>;

  /**
   * Lists every buyer who ever took units in this bucket, in chunks, even in vain. A process can then answer `sold_out`
   * from memory without refusing a buyer who repeats an accepted purchase.
   */
  acceptedBuyers(ref: BucketRef): AsyncIterable<readonly string[]>;

  /** Returns how many buyers `acceptedBuyers` would return. */
  acceptedBuyerCount(ref: BucketRef): Promise<number>;

  /** Returns null if the bucket is not loaded, or its sale was resharded. */
  readSale(ref: AskedBucket): Promise<StoredSale | null>;
}

/**
 * - `set`: every bucket has that state
 * - `not_warmed`: a bucket is not loaded
 * - `repairing`: a bucket is being rebuilt
 * - `closed`: the sale is over for good; a late `open` changes nothing
 */
export type SetStateOutcome = 'set' | 'not_warmed' | 'repairing' | 'closed';

/** Loads, edits and removes a sale in Redis. Methods throw OperationalError redis; then repeat the call. */
export interface SaleStore {
  /** Loads stock, limits, window and epoch. Never overwrites a loaded sale. Source: lua/warm-2.lua */
  warm(sale: Sale): Promise<'warmed' | 'already_warm'>;

  /** Sets the state of every bucket. Safe to repeat. Source: lua/set-state-1.lua */
  setState(sale: Sale, state: 'warm' | 'open' | 'paused' | 'closed'): Promise<SetStateOutcome>;

  /** Removes a retired or deleted sale, bucket by bucket. Its markers expire by themselves. Safe to repeat. */
  forget(sale: SaleBuckets): Promise<void>;

  /** Adds or takes units, and sets the end of the window, once per edit and epoch. Source: lua/edit-2.lua */
  edit(ref: BucketRef, edit: BucketEdit): Promise<(typeof BUCKET_EDITED)[number]>;
}
