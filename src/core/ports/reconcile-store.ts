import type { RequestEntry } from '../outcome.js';
import type { BucketTransfers, BucketRef } from '../bucket.js';

/** A request with its key, `userId/requestId`. */
export type StoredRequest = readonly [key: string, entry: RequestEntry];

/** The data of one batch in Redis. */
export interface StoredBatch {
  /**
   * Time since the deduct, ms. Null if the batch is not in `pending`, because it was recorded, parked or never
   * deducted.
   */
  readonly pendingMs: number | null;
  /** Null if the batch has no marker. */
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
  /**
   * Whether the stock changed while the units of the buyers were added up, so that the two numbers cannot be compared.
   */
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

/** Units left in a bucket: as they were read in this epoch, and as they should be. */
export interface AdjustedUnits {
  readonly read: number;
  readonly wanted: number;
  readonly epoch: number;
}

/** Reads a bucket for reconcile: all requests, page by page, and single entries for a second check. */
export interface ReconcileStore {
  /**
   * Reads every request that the bucket ever accepted, in pages. A request that arrives or goes during the read may be
   * missing; no other request is missing. A request may appear twice.
   * @throws OperationalError redis
   */
  requests(ref: BucketRef): AsyncIterable<readonly StoredRequest[]>;

  /**
   * Returns the entries of these keys, in order. Null for a key that the bucket does not know.
   * @throws OperationalError redis
   */
  entriesOf(ref: BucketRef, keys: readonly string[]): Promise<(RequestEntry | null)[]>;

  /** @throws OperationalError redis */
  batch(ref: BucketRef, batchId: string): Promise<StoredBatch>;

  /**
   * Returns which of these batches are in `pending`.
   * @throws OperationalError redis
   */
  pendingAmong(ref: BucketRef, batchIds: readonly string[]): Promise<ReadonlyMap<string, PendingAge>>;

  /**
   * @param youngMs batches younger than this count as still on their way
   * @returns null if the bucket is not loaded
   * @throws OperationalError redis
   */
  units(ref: BucketRef, youngMs: number): Promise<BucketUnits | null>;

  /**
   * Sets the units left in a bucket if they have not changed since they were read and the bucket does not sell.
   * @throws OperationalError redis; the change may be made, so measure again. Source: lua/adjust-2.lua
   */
  adjust(ref: BucketRef, unitsLeft: AdjustedUnits): Promise<Adjusted>;

  /**
   * Returns which of these batches are recorded: they have a marker without a body and are not in `pending`.
   * @throws OperationalError redis
   */
  recordedMarkers(ref: BucketRef, batchIds: readonly string[]): Promise<string[]>;

  /**
   * Removes the markers of batches that `recordedMarkers` has returned.
   * @returns the number of removed markers
   * @throws OperationalError redis; some markers may be removed
   */
  removeMarkers(ref: BucketRef, batchIds: readonly string[]): Promise<number>;
}
