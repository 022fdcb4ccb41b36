import type { RequestEntry } from '../outcome.js';
import type { BucketTransfers, BucketRef } from '../bucket.js';

/** A request by its key, `userId/requestId`. */
export type StoredRequest = readonly [key: string, entry: RequestEntry];

/** What Redis has of one batch. */
export interface StoredBatch {
  /** Since its deduct, ms; null when it is not in `pending`: recorded, parked, or never deducted. */
  readonly pendingMs: number | null;
  /** Null: there is none. */
  readonly marker: 'deducted' | 'claimed' | 'aborted' | null;
  /** What a re-drive sends; null once it is recorded. */
  readonly body: string | null;
}

/** A batch that is in `pending`. */
export interface PendingAge {
  /** Since its deduct, ms. */
  readonly pendingMs: number;
  /** Whether its marker has what a re-drive sends. */
  readonly hasBody: boolean;
}

export interface BucketUnits {
  readonly unitsLeft: number;
  /** Units held or ordered, all buyers together. */
  readonly unitsOfBuyers: number;
  /** Whether the stock moved while the buyers were added up: then the two cannot be compared. */
  readonly moved: boolean;
  /** Batches in `pending`. */
  readonly pending: number;
  /** Of those, deducted less than the asked time ago. */
  readonly youngPending: number;
  /** Transfers to and from other buckets. */
  readonly transfers: BucketTransfers;
}

/**
 * - `adjusted`: the bucket has the units that it should have
 * - `moved`: the stock was not as it was read; nothing was changed
 * - `selling`: the sale is open or in repair; nothing was changed
 * - `not_warmed`: the bucket is not loaded
 */
export const ADJUST_WORDS = ['not_warmed', 'selling', 'moved', 'adjusted'] as const;
export type Adjusted = (typeof ADJUST_WORDS)[number];

/** Units left of a bucket: as they were read in this epoch, and as they should be. */
export interface AdjustedUnits {
  readonly read: number;
  readonly wanted: number;
  readonly epoch: number;
}

/** Reads a bucket for reconcile: all requests page by page, and single entries for a second check. */
export interface ReconcileStore {
  /**
   * Every request that the bucket ever let in, in pages. One that comes while it is read may be missing, none that stays
   * is; one may come twice.
   * @throws OperationalError redis
   */
  requests(ref: BucketRef): AsyncIterable<readonly StoredRequest[]>;

  /**
   * The entries of these keys, in order; null for one that the bucket does not know.
   * @throws OperationalError redis
   */
  entriesOf(ref: BucketRef, keys: readonly string[]): Promise<(RequestEntry | null)[]>;

  /** @throws OperationalError redis */
  batch(ref: BucketRef, batchId: string): Promise<StoredBatch>;

  /**
   * Those of the batches that are in `pending`; the others are missing.
   * @throws OperationalError redis
   */
  pendingAmong(ref: BucketRef, batchIds: readonly string[]): Promise<ReadonlyMap<string, PendingAge>>;

  /**
   * @param youngMs how old a batch must be to count as no longer on its way
   * @returns null when the bucket is not loaded
   * @throws OperationalError redis
   */
  units(ref: BucketRef, youngMs: number): Promise<BucketUnits | null>;

  /**
   * Sets the units left of a bucket, if they are still as they were read and the bucket does not sell.
   * @throws OperationalError redis; it may have been done, so measure again
   * Source: lua/adjust-2.lua
   */
  adjust(ref: BucketRef, unitsLeft: AdjustedUnits): Promise<Adjusted>;

  /**
   * Which of these batches have a marker without a body and are not in `pending`: they are recorded.
   * @throws OperationalError redis
   */
  recordedMarkers(ref: BucketRef, batchIds: readonly string[]): Promise<string[]>;

  /**
   * Removes markers; for batches that `recordedMarkers` has named.
   * @returns how many there were
   * @throws OperationalError redis; some may be gone
   */
  removeMarkers(ref: BucketRef, batchIds: readonly string[]): Promise<number>;
}
