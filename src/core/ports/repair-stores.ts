import type { Batch } from '../batch.js';
import type { Sale, StoredSaleState } from '../sale.js';
import type { StoredRequest } from './reconcile-store.js';
import type { BucketRef } from '../bucket.js';
import type { OperationalError } from '../errors.js';

/** The number of buckets before and after a reshard. */
export interface Reshard {
  readonly from: number;
  readonly to: number;
}

/** The part of a repair that changes MySQL. */
export interface RepairRepository {
  /**
   * Begins a new epoch. After the commit, no batch is recorded under an older epoch.
   * @param atLeast the new epoch is this epoch or a later epoch that was never in use
   * @param actor who requested the repair, for the audit log
   * @param reshard gives the sale `to` buckets, if it still has `from`
   * @returns the sale in its new epoch; null if the sale does not exist, is retired, or has a different number of
   * buckets by now
   * @throws OperationalError mysql; the epoch may have been raised, which does no harm
   */
  raiseEpoch(saleId: string, atLeast: number, actor: string, reshard?: Reshard): Promise<Sale | null>;

  /**
   * Records in the audit log that a program is about to reshard a hot sale. Succeeds only once in the life of the sale,
   * even if several processes ask.
   * @param perSecond purchase attempts, for the audit log
   * @returns whether the caller may reshard: the sale is open, has `from` buckets, and no other caller was given
   * permission before
   * @throws OperationalError mysql; the permission may have been used up, and then no caller may reshard
   */
  claimReshard(saleId: string, reshard: Reshard, actor: string, perSecond: number): Promise<boolean>;

  /**
   * Returns when the last order of the sale was written, Unix ms on the clock of its worker. The error is at most the
   * duration of a transaction. Null if there are no orders, or if all are archived.
   * @throws OperationalError mysql
   */
  lastOrderMs(saleId: string): Promise<number | null>;

  /**
   * Returns the batches of this sale whose dead letter is still parked. Their units stay held.
   * @throws OperationalError mysql
   */
  parkedBatchesOf(saleId: string): Promise<Batch[]>;
}

/** State and epoch of a bucket, and whether its server is still the same. */
export interface BucketStatus {
  /** Null if not loaded. */
  readonly state: StoredSaleState | null;
  /** 0 if the bucket is not loaded. */
  readonly epoch: number;
  /**
   * Whether the bucket is still on the server where it was loaded or rebuilt. After a restart or fail-over, a server
   * counts as a different one, because it may have lost the last writes.
   */
  readonly sameServer: boolean;
}

/** The initial values of a rebuilt bucket. Its requests and buyers have been staged before. Times in Unix ms. */
export interface RebuiltBucket {
  readonly unitsLeft: number;
  readonly epoch: number;
  readonly state: Exclude<StoredSaleState, 'repair'>;
  readonly opensAtMs: number;
  readonly closesAtMs: number;
  readonly limitPerBuyer: number;
  /** Number of buckets of the sale from now on. */
  readonly buckets: number;
}

/**
 * Sales that a caller needs although Redis may have lost their data. A closed sale is rebuilt only on such a request,
 * because there may be thousands of closed sales, and nearly all of them are read only from MySQL.
 */
export interface RepairAsks {
  /** Asks for the repair of a sale that needs it. Never rejects; if the call fails, the next caller asks again. */
  askForRepair(saleId: string): Promise<void>;

  /**
   * Returns at most `max` sales for which a repair was requested.
   * @throws OperationalError redis
   */
  asked(max: number): Promise<string[]>;

  /**
   * Removes the request, because the sale no longer needs a repair.
   * @throws OperationalError redis
   */
  answered(saleId: string): Promise<void>;
}

/**
 * Rebuilds buckets that may have lost data. Every call after `lock` carries its token. A late command does nothing if
 * another repair has taken over, or if its repair began on another server (protocol rule 12).
 */
export interface RepairStore extends RepairAsks {
  /**
   * Returns the status of the buckets of one sale, in order.
   * @throws OperationalError redis. Source: lua/bucket-status-1.lua
   */
  statusOf(refs: readonly BucketRef[]): Promise<BucketStatus[]>;

  /**
   * Returns the status of buckets of many sales. A bucket that did not answer has a fault instead. Never rejects with a
   * fault.
   */
  statusOrFault(refs: readonly BucketRef[]): Promise<(BucketStatus | OperationalError)[]>;

  /**
   * Locks the bucket, so that nothing is sold, recorded or released, and removes what an earlier repair has staged.
   * @param token a random name for this repair
   * @param leaseMs for this time no other repair may lock the bucket; every later call renews the lease
   * @param seenEpoch the epoch in which the need was seen; if absent, any epoch. Without this check, a keeper that was
   * paused in between could lock a sale that another keeper has already repaired
   * @returns `busy` while another repair has its lease, `moved` if the bucket belongs to another epoch
   * @throws OperationalError redis. Source: lua/lock-3.lua
   */
  lock(ref: BucketRef, token: string, leaseMs: number, seenEpoch?: number): Promise<'locked' | 'busy' | 'moved'>;

  /**
   * Reads the requests of the bucket that have units, `held` or `ordered`, in pages. A request may appear twice.
   * Nothing changes while the bucket is locked.
   * @throws OperationalError redis
   */
  requestsWithUnits(ref: BucketRef): AsyncIterable<readonly StoredRequest[]>;

  /**
   * Stages entries and counts the buyers from them. An entry that was staged before stays unchanged. Without entries,
   * the call only renews the lease.
   * @returns `superseded` if the bucket has another token by now; nothing was staged
   * @throws OperationalError redis; some entries may be staged, so call again with all. Source: lua/stage-3.lua
   */
  stage(ref: BucketRef, token: string, entries: readonly StoredRequest[]): Promise<'staged' | 'superseded'>;

  /**
   * Returns the bodies of the batches in `pending`, except those without a body.
   * @throws OperationalError redis
   */
  pendingBodies(ref: BucketRef): Promise<string[]>;

  /**
   * Restores the marker of a batch, for a re-drive or a replay, in a bucket that holds units of the batch. Keeps an
   * existing marker.
   * @param isPending whether to put the batch into `pending` there as well, as if it were deducted now
   * @throws OperationalError redis. Source: lua/restore-marker-3.lua
   */
  restoreMarker(batch: Batch, bucket: number, token: string, isPending: boolean): Promise<'restored' | 'superseded'>;

  /**
   * Replaces the old data with the staged data, stamps the bucket with this server and the new epoch, and ends the
   * repair, all in one step. Transfers of earlier epochs are forgotten, because the new stock already counts their
   * units.
   * @throws OperationalError redis; the swap may be done. Source: lua/swap-7.lua
   */
  swap(ref: BucketRef, token: string, rebuilt: RebuiltBucket): Promise<'swapped' | 'superseded'>;
}
