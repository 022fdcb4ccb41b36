import type { Batch } from '../batch.js';
import type { Order } from '../order.js';
import type { BucketRef } from '../bucket.js';
import type { OperationalError } from '../errors.js';

/** A purchase of a batch, with its live order. */
export type LiveOrder = Pick<Order, 'userId' | 'requestId' | 'orderId' | 'state'>;

/** A request whose row has ended, so its units may go back. `bucket`: where it was when the release was stored. */
export interface Release extends BucketRef {
  readonly userId: string;
  readonly requestId: string;
  /** The row that ended the request. */
  readonly orderId: string;
  /** Only units held by this batch (or already `ordered`) go back. Empty: any batch. */
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
 * - `unparked`, `already_pending`: its units are held, and it is in `pending`
 * - `recorded`: in MySQL, and marked in Redis
 * - `aborted`: its units are not held and never will be
 * - `unknown`: no marker, so nobody can tell whether the units are held; nothing was changed
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
 * - `claimed`: every purchase without a row is held in the current epoch, except the `lost` keys and those that another
 *   batch holds (perhaps in another quantity) and will record
 * - `unavailable`: the bucket is in repair, needs repair, or is in another epoch; nothing was changed, call again
 * - `not_warmed`: the bucket is not loaded
 */
export type Reacquired =
  | { readonly outcome: 'claimed'; readonly lost: ReadonlySet<string>; readonly elsewhere: ReadonlySet<string> }
  | { readonly outcome: 'unavailable' | 'not_warmed' };

/**
 * Batches in Redis after their deduct. Every call is safe to repeat, and finds the requests after a reshard. Methods
 * throw OperationalError redis; then call again.
 */
export interface BatchStore {
  /**
   * Marks batches as recorded in MySQL: each leaves `pending`, its marker loses the body, and each request that it
   * still holds becomes `ordered`. No other request changes. If all orders of a batch change so, the same write
   * notifies the waiting buyers. Throws also while the bucket is in repair. Source: lua/mark-recorded-4.lua; protocol
   * rules 7 and 8
   * @param recorded batches with their live orders: `release` closes a purchase that ended `failed`
   */
  markRecorded(recorded: readonly { readonly batch: Batch; readonly orders: readonly LiveOrder[] }[]): Promise<void>;

  /**
   * Takes units, and room under the limit, for a batch of an older epoch whose deduct may be lost. The batch then holds
   * each purchase that has neither a row nor an entry. A purchase without units or room is lost: it is closed, so its
   * key cannot be accepted again before its row says that it failed. The batch is then in `pending`, and its marker, if
   * it had none, is `claimed`. If this is impossible now, asks for the repair of the sale. Source: lua/reacquire-6.lua;
   * protocol rule 13
   * @param epoch of the sale in MySQL now
   * @param recorded keys (`userId/requestId`) of the purchases that have a row
   */
  reacquire(batch: Batch, epoch: number, recorded: ReadonlySet<string>): Promise<Reacquired>;

  /**
   * Gives back the units of ended requests, each at most once. Returns one word per release, in order. Throws also
   * while the bucket is in repair. Source: lua/release-4.lua; protocol rule 7
   */
  release(releases: readonly Release[]): Promise<('released' | 'nothing')[]>;

  /**
   * Lists batches that were deducted more than `olderThanMs` ago and are not marked as recorded, oldest first.
   * @param wanted selects from the first `max`, and bodies of others are not read; called once, if there are any.
   * Absent: all
   * @param skip number of the oldest batches to skip
   * @throws also any error of `wanted`
   */
  stalePending(
    ref: BucketRef,
    olderThanMs: number,
    max: number,
    wanted?: (batchIds: readonly string[]) => Promise<ReadonlySet<string>>,
    skip?: number,
  ): Promise<PendingBatch[]>;

  /**
   * Leases batches, as in `stalePending`, for `leaseMs`. Skips batches that `leaveAlone` has paused. Source:
   * lua/take-due-2.lua
   * @param fromMs deduct time from which to search for batches that were never leased. A call covers some hundred
   * batches
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

  /** `takeDue` skips each batch for `forMs`: it was published or is being retried. Source: lua/leave-alone-1.lua */
  leaveAlone(ref: BucketRef, pauses: readonly { readonly batchId: string; readonly forMs: number }[]): Promise<void>;

  /** Lists buckets that have a batch deducted but not marked as recorded, in order. Never rejects with a fault. */
  withPending(refs: readonly BucketRef[]): Promise<PendingBuckets>;

  /** Counts batches that are deducted but not marked as recorded. `oldestMs` is the age of the oldest. */
  pendingSummary(ref: BucketRef): Promise<{ readonly batches: number; readonly oldestMs: number }>;

  /** Counts batches that have waited longer than `afterMs`. `oldestMs`: by how much the oldest exceeds it, or 0. */
  overduePending(ref: BucketRef, afterMs: number): Promise<{ readonly batches: number; readonly oldestMs: number }>;

  /**
   * Returns the keys (`userId/requestId`) of the purchases that another batch holds and will record. Reads entries as
   * they are, even if the bucket may have lost later writes.
   */
  heldElsewhere(batch: Batch): Promise<ReadonlySet<string>>;

  /** Takes a parked batch out of `pending`; its units stay held. Back in `pending`, its age starts at zero. */
  park(batch: Batch): Promise<void>;

  /**
   * Puts a parked batch whose units are held back into `pending`, as if deducted now, so the re-drive finds it if the
   * publishing process dies. For `unknown`, asks for the repair of the sale. Source: lua/unpark-2.lua; protocol rule 8
   */
  unpark(batch: Batch): Promise<Unparked>;
}
