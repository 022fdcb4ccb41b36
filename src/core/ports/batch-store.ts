import type { Batch } from '../batch.js';
import type { Order } from '../order.js';
import type { BucketRef } from '../bucket.js';
import type { OperationalError } from '../errors.js';

/** A purchase of a batch and the live order that it became. */
export type LiveOrder = Pick<Order, 'userId' | 'requestId' | 'orderId' | 'state'>;

/** A request whose row has ended, so that its units may go back. `bucket` is where it was when the release was written to the outbox. */
export interface Release extends BucketRef {
  readonly userId: string;
  readonly requestId: string;
  /** The row that ended it. */
  readonly orderId: string;
  /** Only units held by this batch (or already `ordered`) go back; an empty string means any. */
  readonly batchId: string;
  /** False for a purchase whose unit never existed: the request is closed, nothing goes back. */
  readonly withUnits: boolean;
}

/** A batch that was deducted and is not marked as recorded yet. */
export interface PendingBatch {
  readonly batchId: string;
  /** Since the deduct, on Redis time. */
  readonly ageMs: number;
  /** What a re-drive sends; null when the marker is gone or has no body. */
  readonly body: string | null;
}

/**
 * - `unparked`, `already_pending`: its units are held and it is in `pending`
 * - `recorded`: it is in MySQL, and Redis is marked
 * - `aborted`: its units are not held and never will be
 * - `unknown`: there is no marker, so whether its units are held cannot be said; nothing was changed
 */
export const UNPARK_WORDS = ['unknown', 'aborted', 'recorded', 'already_pending', 'unparked'] as const;
export type Unparked = (typeof UNPARK_WORDS)[number];

/** Batches that were taken to be published again. */
export interface DueBatches {
  readonly batches: readonly PendingBatch[];
  /** Where the next call is to begin. */
  readonly nextFromMs: number;
  /** Whether there may be more now. */
  readonly more: boolean;
}

/** Buckets with a batch in `pending`, and one fault for each bucket that did not answer. */
export interface PendingBuckets {
  readonly refs: readonly BucketRef[];
  readonly faults: readonly OperationalError[];
}

/**
 * - `claimed`: every purchase without a row is held in the present epoch, except the keys that are `lost`, and those that
 *   another batch holds, maybe in another quantity: that batch records them
 * - `unavailable`: the bucket is in repair or in need of it, or of another epoch; nothing was changed, ask again
 * - `not_warmed`: the bucket is not loaded
 */
export type Reacquired =
  | { readonly outcome: 'claimed'; readonly lost: ReadonlySet<string>; readonly elsewhere: ReadonlySet<string> }
  | { readonly outcome: 'unavailable' | 'not_warmed' };

/**
 * Batches in Redis after their deduct. Every call is safe to repeat. Where the sale was resharded since a batch was formed,
 * each call finds the buckets that its requests are in now.
 */
export interface BatchStore {
  /**
   * Marks these batches as recorded in MySQL: each leaves `pending`, its marker loses the body, and each
   * request still `held` by it becomes `ordered`. Nothing else moves. Where all orders of a batch move, the same write
   * notifies the buyers who wait for them.
   * @param recorded the batch and its live orders (a purchase that ended `failed` is absent: `release` closes it)
   * @throws OperationalError redis, also while the bucket is in repair; some may be marked, so call again with all
   * Source: lua/mark-recorded-4.lua; protocol rules 7 and 8
   */
  markRecorded(recorded: readonly { readonly batch: Batch; readonly orders: readonly LiveOrder[] }[]): Promise<void>;

  /**
   * Takes units and limit for a batch of an older epoch, whose deduct may have been lost. Each purchase that neither has
   * a row nor an entry is `held` by the batch from now on; one that finds no units, or no place under the limit, is lost:
   * it is closed, so that the same key is not let in again before its row says that it failed.
   * The batch is in `pending` and its marker, if it had none, is `claimed`. Where that is not possible now, the repair of
   * the sale is asked for. Safe to repeat.
   * @param epoch of the sale, as MySQL has it now
   * @param recorded keys (`userId/requestId`) of its purchases that have a row
   * @throws OperationalError redis; it may have been done, so call again
   * Source: lua/reacquire-6.lua; protocol rule 13
   */
  reacquire(batch: Batch, epoch: number, recorded: ReadonlySet<string>): Promise<Reacquired>;

  /**
   * Gives the units of ended requests back, each at most once.
   * @returns one word per release, in order
   * @throws OperationalError redis, also while the bucket is in repair; some may be released, so call again with all
   * Source: lua/release-4.lua; protocol rule 7
   */
  release(releases: readonly Release[]): Promise<('released' | 'nothing')[]>;

  /**
   * Batches deducted more than `olderThanMs` ago and not marked as recorded, oldest first: of the first `max` those that
   * are wanted.
   * @param wanted is asked once, if there are any; bodies of others are not read. Absent: all are wanted
   * @param skip so many of the oldest are passed over
   * @throws OperationalError redis; what `wanted` throws
   */
  stalePending(
    ref: BucketRef,
    olderThanMs: number,
    max: number,
    wanted?: (batchIds: readonly string[]) => Promise<ReadonlySet<string>>,
    skip?: number,
  ): Promise<PendingBatch[]>;

  /**
   * Takes batches deducted more than `olderThanMs` ago and not marked as recorded, oldest first, unless they are left
   * alone: nobody else gets them for `leaseMs`.
   * @param fromMs batches that were never taken are looked for from this time of deduct on, some hundred in one call
   * @throws OperationalError redis; they may be taken
   * Source: lua/take-due-2.lua
   */
  takeDue(
    ref: BucketRef,
    terms: {
      readonly olderThanMs: number;
      readonly leaseMs: number;
      readonly max: number;
      readonly fromMs: number;
    },
  ): Promise<DueBatches>;

  /**
   * `takeDue` leaves these batches alone for so long: they were published, or a consumer goes on trying them.
   * @throws OperationalError redis
   * Source: lua/leave-alone-1.lua
   */
  leaveAlone(ref: BucketRef, pauses: readonly { readonly batchId: string; readonly forMs: number }[]): Promise<void>;

  /** Those of the buckets that have a batch deducted and not marked as recorded, in order. Never rejects with a fault. */
  withPending(refs: readonly BucketRef[]): Promise<PendingBuckets>;

  /**
   * How many batches are deducted and not marked as recorded, and how long the oldest has waited.
   * @throws OperationalError redis
   */
  pendingSummary(ref: BucketRef): Promise<{ readonly batches: number; readonly oldestMs: number }>;

  /**
   * How many batches wait for more than `afterMs`, and for how much more the oldest one does (0 when there is none).
   * @throws OperationalError redis
   */
  overduePending(ref: BucketRef, afterMs: number): Promise<{ readonly batches: number; readonly oldestMs: number }>;

  /**
   * Keys (`userId/requestId`) of those purchases of the batch that another batch holds, and will record. Read as they
   * stand, also where the bucket may have lost what came after.
   * @throws OperationalError redis
   */
  heldElsewhere(batch: Batch): Promise<ReadonlySet<string>>;

  /**
   * Takes a parked batch out of `pending`; its units stay held. Back there, it counts anew for the re-drive.
   * @throws OperationalError redis
   */
  park(batch: Batch): Promise<void>;

  /**
   * Puts a parked batch whose units are held back into `pending`, as if it were deducted now: if the
   * process that publishes it dies, the re-drive finds it there. `unknown` asks for the repair of the sale.
   * @throws OperationalError redis; it may be in `pending`, so call again
   * Source: lua/unpark-2.lua; protocol rule 8
   */
  unpark(batch: Batch): Promise<Unparked>;
}
