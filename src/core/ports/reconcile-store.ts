import type { RequestEntry } from '../outcome.js';
import type { BucketTransfers, BucketRef } from '../bucket.js';

/** A request with its key, `userId/requestId`. */
export type StoredRequest = readonly [key: string, entry: RequestEntry];

/** The data of one batch in Redis. */
export interface StoredBatch {
  /** Time since the deduct, ms. Null if not in `pending`: recorded, parked or never deducted. */
  readonly pendingMs: number | null;
  /** Null if there is no marker. */
  readonly marker: 'deducted' | 'claimed' | 'aborted' | null;
  /** The body that a re-drive sends. Null once the batch is recorded. */
  readonly body: string | null;
}

/** A batch that is in `pending`. */
export interface PendingAge {
  /** Time since the deduct, ms. */
  readonly pendingMs: number;
  /** Whether its marker contains the body for a re-drive. */
  readonly hasBody: boolean;
}

export interface BucketUnits {
  readonly unitsLeft: number;
  /** Units that all buyers together hold or have ordered. */
  readonly unitsOfBuyers: number;
  /** Whether the stock changed while these units were added up, so the two cannot be compared. */
  readonly moved: boolean;
  /** Number of batches in `pending`. */
  readonly pending: number;
  /** Number of batches in `pending` that are younger than the given age. */
  readonly youngPending: number;
  /** Transfers to and from other buckets. */
  readonly transfers: BucketTransfers;
}

/**
 * - `adjusted`: the bucket has the units that it should have
 * - `moved`: the stock had changed since it was read; nothing was changed
 * - `selling`: the sale is open or in repair; nothing was changed
 * - `not_warmed`: the bucket is not loaded
 */
export const ADJUST_WORDS = ['not_warmed', 'selling', 'moved', 'adjusted'] as const;
export type Adjusted = (typeof ADJUST_WORDS)[number];

/** Units left in a bucket: as read in this epoch, and as they should be. */
export interface AdjustedUnits {
  readonly read: number;
  readonly wanted: number;
  readonly epoch: number;
}

/** Reads a bucket: requests in pages, and entries for a second check. Methods throw OperationalError redis. */
export interface ReconcileStore {
  /** Reads every request ever accepted, some perhaps twice. Requests that arrive or go during this may be missing. */
  requests(ref: BucketRef): AsyncIterable<readonly StoredRequest[]>;

  /** Returns the entries in order. Null for a key that the bucket does not know. */
  entriesOf(ref: BucketRef, keys: readonly string[]): Promise<(RequestEntry | null)[]>;

  batch(ref: BucketRef, batchId: string): Promise<StoredBatch>;

  /** Returns which of these batches are in `pending`. */
  pendingAmong(ref: BucketRef, batchIds: readonly string[]): Promise<ReadonlyMap<string, PendingAge>>;

  /** Returns null if the bucket is not loaded. @param youngMs younger batches count as on their way */
  units(ref: BucketRef, youngMs: number): Promise<BucketUnits | null>;

  /** Sets the units left if unchanged and not selling. After an error, measure again. Source: lua/adjust-2.lua */
  adjust(ref: BucketRef, unitsLeft: AdjustedUnits): Promise<Adjusted>;

  /** Returns the recorded batches: they have a marker without a body and are not in `pending`. */
  recordedMarkers(ref: BucketRef, batchIds: readonly string[]): Promise<string[]>;

  /** Removes markers of batches that `recordedMarkers` has returned. Returns their number. */
  removeMarkers(ref: BucketRef, batchIds: readonly string[]): Promise<number>;
}
