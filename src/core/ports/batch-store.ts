import type { Batch } from '../batch.js';
import type { Order } from '../order.js';
import type { BucketRef } from '../bucket.js';
import type { OperationalError } from '../errors.js';

/** A purchase of a batch, with the live order that came of it. */
export type LiveOrder = Pick<Order, 'userId' | 'requestId' | 'orderId' | 'state'>;

/**
 * A request whose row has ended, so that its units may go back. `bucket` is the bucket that the request had when the
 * release was written to the outbox.
 */
export interface Release extends BucketRef {
  readonly userId: string;
  readonly requestId: string;
  /** The row that ended the request. */
  readonly orderId: string;
  /** If set, only units held by this batch (or already `ordered`) go back. Empty: any batch. */
  readonly batchId: string;
  /** False for a purchase that never had units: the request is closed, and no units go back. */
  readonly withUnits: boolean;
}

/** A batch whose units were deducted but which is not yet marked as recorded. */
export interface PendingBatch {
  readonly batchId: string;
  /** Time since the deduct, on the clock of Redis. */
  readonly ageMs: number;
  /** The body that a re-drive sends. Null if the marker is gone or has no body. */
  readonly body: string | null;
}

/**
 * - `unparked`, `already_pending`: the units of the batch are held and the batch is in `pending`
 * - `recorded`: the batch is in MySQL, and Redis is marked
 * - `aborted`: the units of the batch are not held and never will be
 * - `unknown`: there is no marker, so nobody can tell whether the units are held; nothing was changed
 */
export const UNPARK_WORDS = ['unknown', 'aborted', 'recorded', 'already_pending', 'unparked'] as const;
export type Unparked = (typeof UNPARK_WORDS)[number];

/** Batches leased to be published again. */
export interface DueBatches {
  readonly batches: readonly PendingBatch[];
  /** The deduct time at which the next call starts its search. */
  readonly nextFromMs: number;
  /** Whether more batches may be due now. */
  readonly more: boolean;
}

/** Buckets with a batch in `pending`, and one fault for each bucket that did not answer. */
export interface PendingBuckets {
  readonly refs: readonly BucketRef[];
  readonly faults: readonly OperationalError[];
}

/**
 * - `claimed`: every purchase without a row is held in the current epoch. Exceptions: the `lost` keys, and purchases
 *   that another batch holds (perhaps in another quantity) and will record
 * - `unavailable`: the bucket is in repair, needs repair, or belongs to another epoch; nothing was changed, call again
 * - `not_warmed`: the bucket is not loaded
 */
export type Reacquired =
  | { readonly outcome: 'claimed'; readonly lost: ReadonlySet<string>; readonly elsewhere: ReadonlySet<string> }
  | { readonly outcome: 'unavailable' | 'not_warmed' };

/**
 * Batches in Redis after their deduct. Every call is safe to repeat. If the sale has been resharded since a batch was
 * formed, each call finds the buckets in which the requests are now.
 */
export interface BatchStore {
  /**
   * Marks these batches as recorded in MySQL: each leaves `pending`, its marker loses the body, and each request that
   * it still holds becomes `ordered`. No other request changes. If all orders of a batch change this way, the same
   * write notifies the buyers who wait for them.
   * @param recorded the batch and its live orders (a purchase that ended `failed` is absent, because `release` closes
   * it)
   * @throws OperationalError redis, including while the bucket is in repair; some may be marked, so call again with all
   * Source: lua/mark-recorded-4.lua; protocol rules 7 and 8
   */
  markRecorded(recorded: readonly { readonly batch: Batch; readonly orders: readonly LiveOrder[] }[]): Promise<void>;

  /**
   * Takes units, and room under the limit, for a batch of an older epoch whose deduct may have been lost. The batch now
   * holds each purchase that has neither a row nor an entry. A purchase that finds no units, or no room under the
   * limit, is lost: it is closed, so its key cannot be accepted again before its row says that it failed. The batch is
   * then in `pending`, and its marker, if it had none before, is `claimed`. If the call is not possible at present, it
   * asks for the repair of the sale. Safe to repeat.
   * @param epoch the epoch of the sale in MySQL now
   * @param recorded keys (`userId/requestId`) of the purchases that have a row
   * @throws OperationalError redis; the call may have taken effect, so call again
   * Source: lua/reacquire-6.lua; protocol rule 13
   */
  reacquire(batch: Batch, epoch: number, recorded: ReadonlySet<string>): Promise<Reacquired>;

  /**
   * Gives back the units of ended requests, each at most once.
   * @returns one word per release, in order
   * @throws OperationalError redis, including while the bucket is in repair; some may be released, so call again with
   * all. Source: lua/release-4.lua; protocol rule 7
   */
  release(releases: readonly Release[]): Promise<('released' | 'nothing')[]>;

  /**
   * Lists batches that were deducted more than `olderThanMs` ago and are not marked as recorded, oldest first. Of the
   * first `max`, returns only the wanted ones.
   * @param wanted selects batches; called once, if there are any batches. The bodies of the others are not read.
   * Absent: all are wanted
   * @param skip number of the oldest batches to skip
   * @throws OperationalError redis; any error of `wanted`
   */
  stalePending(
    ref: BucketRef,
    olderThanMs: number,
    max: number,
    wanted?: (batchIds: readonly string[]) => Promise<ReadonlySet<string>>,
    skip?: number,
  ): Promise<PendingBatch[]>;

  /**
   * Leases batches that were deducted more than `olderThanMs` ago and are not marked as recorded, oldest first. Skips
   * batches that `leaveAlone` has paused. No other caller gets the leased batches for `leaseMs`.
   * @param fromMs the deduct time at which the search for batches that were never leased starts; each call covers some
   * hundred batches
   * @throws OperationalError redis; the batches may be leased. Source: lua/take-due-2.lua
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
   * Makes `takeDue` skip each batch for `forMs`, because the batch was published or a consumer keeps trying it.
   * @throws OperationalError redis. Source: lua/leave-alone-1.lua
   */
  leaveAlone(ref: BucketRef, pauses: readonly { readonly batchId: string; readonly forMs: number }[]): Promise<void>;

  /**
   * Lists the buckets that have a batch that is deducted but not marked as recorded, in order. Never rejects with a
   * fault.
   */
  withPending(refs: readonly BucketRef[]): Promise<PendingBuckets>;

  /**
   * Counts the batches that are deducted but not marked as recorded, and says how long the oldest has waited.
   * @throws OperationalError redis
   */
  pendingSummary(ref: BucketRef): Promise<{ readonly batches: number; readonly oldestMs: number }>;

  /**
   * Counts the batches that have waited longer than `afterMs`. `oldestMs` is how much longer than that the oldest has
   * waited, or 0 if there is none.
   * @throws OperationalError redis
   */
  overduePending(ref: BucketRef, afterMs: number): Promise<{ readonly batches: number; readonly oldestMs: number }>;

  /**
   * Returns the keys (`userId/requestId`) of the purchases of this batch that another batch holds and will record.
   * Reads the entries as they are, even if the bucket may have lost later writes.
   * @throws OperationalError redis
   */
  heldElsewhere(batch: Batch): Promise<ReadonlySet<string>>;

  /**
   * Takes a parked batch out of `pending`. Its units stay held. When the batch returns to `pending`, the re-drive
   * counts its age from zero.
   * @throws OperationalError redis
   */
  park(batch: Batch): Promise<void>;

  /**
   * Puts a parked batch whose units are held back into `pending`, as if it were deducted now, so that the re-drive
   * finds the batch if the publishing process dies. For `unknown`, asks for the repair of the sale.
   * @throws OperationalError redis; the batch may be in `pending`, so call again. Source: lua/unpark-2.lua; protocol
   * rule 8
   */
  unpark(batch: Batch): Promise<Unparked>;
}
