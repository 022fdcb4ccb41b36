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

/** The part of a repair that changes MySQL. Methods throw OperationalError mysql. */
export interface RepairRepository {
  /**
   * Begins a new epoch. After the commit, no batch is recorded under an older one. An epoch raised despite an error
   * does no harm.
   * @param atLeast minimum of the new epoch, which was never in use
   * @param actor for the audit log
   * @param reshard gives the sale `to` buckets, if it still has `from`
   * @returns null if the sale does not exist, is retired, or has a different number of buckets by now
   */
  raiseEpoch(saleId: string, atLeast: number, actor: string, reshard?: Reshard): Promise<Sale | null>;

  /**
   * Claims the one automatic reshard that a hot sale may have, in the audit log. After an error, the claim may be used
   * up.
   * @param perSecond purchase attempts, for the audit log
   * @returns whether the caller may reshard: the sale is open, has `from` buckets, and no other caller has claimed
   * before
   */
  claimReshard(saleId: string, reshard: Reshard, actor: string, perSecond: number): Promise<boolean>;

  /** Returns about when a worker last wrote an order of the sale, Unix ms. Null if `orders` has none of its orders. */
  lastOrderMs(saleId: string): Promise<number | null>;

  /** Returns the batches with a parked dead letter. Their units stay held. */
  parkedBatchesOf(saleId: string): Promise<Batch[]>;
}

export interface BucketStatus {
  /** Null if not loaded. */
  readonly state: StoredSaleState | null;
  /** 0 if not loaded. */
  readonly epoch: number;
  /**
   * Whether the bucket is on the server that loaded or rebuilt it. After a restart or fail-over, a server counts as a
   * different one, because it may have lost the last writes.
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
 * Sales that a caller needs although Redis may have lost them. A closed sale is rebuilt only on request: there may be
 * thousands, nearly all read only from MySQL.
 */
export interface RepairAsks {
  /** Asks for the repair of a sale that needs it. Never rejects; if the call fails, the next caller asks again. */
  askForRepair(saleId: string): Promise<void>;

  /** Returns at most `max` sales. @throws OperationalError redis */
  asked(max: number): Promise<string[]>;

  /** Removes the request of a sale that no longer needs a repair. @throws OperationalError redis */
  answered(saleId: string): Promise<void>;
}

/**
 * Rebuilds buckets that may have lost data. Calls after `lock` carry its token: a late call does nothing if another
 * repair has taken over, or if the repair began on another server (protocol rule 12). Methods throw OperationalError
 * redis; call again.
 */
export interface RepairStore extends RepairAsks {
  /** Returns the status of each bucket, in order. Source: lua/bucket-status-1.lua */
  statusOf(refs: readonly BucketRef[]): Promise<BucketStatus[]>;

  /** Reads buckets of many sales. For a silent bucket, returns its fault. Never rejects with a fault. */
  statusOrFault(refs: readonly BucketRef[]): Promise<(BucketStatus | OperationalError)[]>;

  /**
   * Locks the bucket: nothing is sold, recorded or released. Removes what an earlier repair staged. Source:
   * lua/lock-3.lua
   * @param token a random name for this repair
   * @param leaseMs until then no other repair may lock the bucket; every later call renews it
   * @param seenEpoch when the need was seen, so that a keeper that was paused does not lock a sale that another keeper
   * has repaired. Absent: any epoch
   * @returns `busy`: another repair has its lease; `moved`: the bucket is in another epoch
   */
  lock(ref: BucketRef, token: string, leaseMs: number, seenEpoch?: number): Promise<'locked' | 'busy' | 'moved'>;

  /** Reads requests with units (`held`, `ordered`), some perhaps twice, in pages. A locked bucket never changes. */
  requestsWithUnits(ref: BucketRef): AsyncIterable<readonly StoredRequest[]>;

  /**
   * Stages entries, and counts the buyers from them. An entry staged before stays unchanged. Without entries, only
   * renews the lease. Source: lua/stage-3.lua
   * @returns `superseded`: the bucket has another token; nothing was staged
   */
  stage(ref: BucketRef, token: string, entries: readonly StoredRequest[]): Promise<'staged' | 'superseded'>;

  /** Returns the bodies of batches in `pending`. */
  pendingBodies(ref: BucketRef): Promise<string[]>;

  /**
   * Restores the marker of a batch, for a re-drive or replay, in a bucket that holds its units. Keeps an existing one.
   * Source: lua/restore-marker-3.lua
   * @param isPending also put it into `pending`, as if deducted now
   */
  restoreMarker(batch: Batch, bucket: number, token: string, isPending: boolean): Promise<'restored' | 'superseded'>;

  /**
   * Replaces the old data by the staged data, stamps the bucket with this server and the new epoch, and ends the
   * repair, in one step. Forgets transfers of earlier epochs: the new stock counts their units. Source: lua/swap-7.lua
   */
  swap(ref: BucketRef, token: string, rebuilt: RebuiltBucket): Promise<'swapped' | 'superseded'>;
}
