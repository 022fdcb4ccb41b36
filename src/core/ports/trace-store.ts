import type { RequestEntry } from '../outcome.js';
import type { BucketRef } from './stock-store.js';

/** What the ledger has of one batch. */
export interface TracedBatch {
  /** The word of the marker; null: there is none (any more). */
  readonly marker: 'deducted' | 'aborted' | 'claimed' | null;
  /** The batch itself, until it is settled. */
  readonly body: string | null;
  /** Since when it is deducted and not settled, Unix ms on Redis time; null: it is not in `pending`. */
  readonly pendingSinceMs: number | null;
}

/** The ledger as somebody reads it who asks for one purchase. Changes nothing. */
export interface TraceStore {
  /**
   * Buyers whose request with this id was let in, at most `max`. Reads all requests of the bucket, in chunks.
   * @throws OperationalError redis
   */
  buyersOf(ref: BucketRef, requestId: string, max: number): Promise<string[]>;

  /**
   * The entry of one request as it stands, also where the bucket may have lost what came after it.
   * @throws OperationalError redis
   */
  entryOf(ref: BucketRef, userId: string, requestId: string): Promise<RequestEntry | null>;

  /**
   * The units that a buyer holds or has ordered.
   * @throws OperationalError redis
   */
  unitsOf(ref: BucketRef, userId: string): Promise<number>;

  /** @throws OperationalError redis */
  readBatch(ref: BucketRef, batchId: string): Promise<TracedBatch>;
}
