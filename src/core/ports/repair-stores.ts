import type { Batch } from '../batch.js';
import type { Sale, StoredSaleState } from '../sale.js';
import type { StoredRequest } from './reconcile-store.js';
import type { BucketRef } from '../bucket.js';
import type { OperationalError } from '../errors.js';

/** From how many buckets into how many. */
export interface Reshard {
  readonly from: number;
  readonly to: number;
}

/** The part of a repair that is in MySQL. */
export interface RepairRepository {
  /**
   * Begins a new epoch: from its commit on no batch is recorded under an older one.
   * @param atLeast the new epoch is this one or a later one, never one that was in use
   * @param actor who asked for it, for the audit log
   * @param reshard the sale has `to` buckets from then on, if it still has `from`
   * @returns the sale in its new epoch; null when there is no such sale, it is retired, or has another number of buckets
   *   by now
   * @throws OperationalError mysql; the epoch may have been raised, which does no harm
   */
  raiseEpoch(saleId: string, atLeast: number, actor: string, reshard?: Reshard): Promise<Sale | null>;

  /**
   * Notes in the audit log that a program is about to reshard a hot sale: once in the life of the sale, however many ask.
   * @param perSecond attempts to buy, for the audit log
   * @returns whether the caller may: the sale is open, has `from` buckets, and nobody was told so before
   * @throws OperationalError mysql; it may be noted, and then nobody may
   */
  claimReshard(saleId: string, reshard: Reshard, actor: string, perSecond: number): Promise<boolean>;

  /**
   * Batches of this sale whose dead letter is still parked: their units stay held.
   * @throws OperationalError mysql
   */
  parkedBatchesOf(saleId: string): Promise<Batch[]>;
}

/** State and epoch of a bucket, and whether its server is still the same. */
export interface BucketStatus {
  /** Null: not loaded. */
  readonly state: StoredSaleState | null;
  /** 0 when it is not loaded. */
  readonly epoch: number;
  /**
   * Whether the server is the one that the bucket was loaded or rebuilt on. A restart or a fail-over makes it another,
   * which may have lost the last writes.
   */
  readonly sameServer: boolean;
}

/** What a rebuilt bucket begins with; its requests and buyers were staged before. Times in Unix ms. */
export interface RebuiltBucket {
  readonly unitsLeft: number;
  readonly epoch: number;
  readonly state: Exclude<StoredSaleState, 'repair'>;
  readonly opensAtMs: number;
  readonly closesAtMs: number;
  readonly limitPerBuyer: number;
  /** That the sale has from now on. */
  readonly buckets: number;
}

/**
 * Sales that somebody needs while Redis may have lost data of them. A closed sale is rebuilt only then: there may be
 * thousands, and nearly all are read from MySQL alone.
 */
export interface RepairAsks {
  /** Asks for the repair of a sale that needs it. Never rejects: whoever needs the sale asks again. */
  askForRepair(saleId: string): Promise<void>;

  /**
   * Some of the sales that were asked for.
   * @throws OperationalError redis
   */
  asked(max: number): Promise<string[]>;

  /**
   * The sale needs no repair any more.
   * @throws OperationalError redis
   */
  answered(saleId: string): Promise<void>;
}

/**
 * Rebuilds buckets that may have lost data. Every call after `lock` carries its token: a late command of a repair that
 * another one has taken over, or that began on another server, does nothing (protocol rule 12).
 */
export interface RepairStore extends RepairAsks {
  /**
   * Of the buckets of one sale, in order.
   * @throws OperationalError redis
   * Source: lua/bucket-status-1.lua
   */
  statusOf(refs: readonly BucketRef[]): Promise<BucketStatus[]>;

  /** The same of many sales, with a fault in the place of each bucket that did not answer. Never rejects with a fault. */
  statusOrFault(refs: readonly BucketRef[]): Promise<(BucketStatus | OperationalError)[]>;

  /**
   * Locks the bucket: nothing is sold, recorded or released, and what an earlier repair staged is removed.
   * @param token random; names this repair
   * @param leaseMs how long no other repair may lock the bucket; every later call renews it
   * @param seenEpoch the epoch in which the need was seen; absent: in any. Otherwise a keeper
   *   that paused in between would lock a sale that another one has repaired
   * @returns `busy` while another repair has its lease, `moved` when the bucket is of another epoch
   * @throws OperationalError redis
   * Source: lua/lock-3.lua
   */
  lock(ref: BucketRef, token: string, leaseMs: number, seenEpoch?: number): Promise<'locked' | 'busy' | 'moved'>;

  /**
   * Requests of the bucket that have units, `held` or `ordered`, in pages; one may come twice. Nothing changes while it is locked.
   * @throws OperationalError redis
   */
  requestsWithUnits(ref: BucketRef): AsyncIterable<readonly StoredRequest[]>;

  /**
   * Stages entries; one that was staged before stays as it is. Buyers are counted from them. Without entries it only
   * renews the lease.
   * @returns `superseded` when the token is not that of the bucket any more; nothing was staged
   * @throws OperationalError redis; some may be staged, so call again with all
   * Source: lua/stage-3.lua
   */
  stage(ref: BucketRef, token: string, entries: readonly StoredRequest[]): Promise<'staged' | 'superseded'>;

  /**
   * The bodies of the batches in `pending` that have one.
   * @throws OperationalError redis
   */
  pendingBodies(ref: BucketRef): Promise<string[]>;

  /**
   * Gives a batch its marker in a bucket that holds units of it, if it has none there: what a re-drive or a replay sends.
   * @param isPending whether it is put into `pending` there as well, as if it were deducted now
   * @throws OperationalError redis
   * Source: lua/restore-marker-3.lua
   */
  restoreMarker(batch: Batch, bucket: number, token: string, isPending: boolean): Promise<'restored' | 'superseded'>;

  /**
   * Puts what was staged in place of the old data, stamps the bucket with this server and the new epoch, and ends the
   * repair: all at once. Transfers of earlier epochs are forgotten: the new stock counts their units.
   * @throws OperationalError redis; it may have been done
   * Source: lua/swap-7.lua
   */
  swap(ref: BucketRef, token: string, rebuilt: RebuiltBucket): Promise<'swapped' | 'superseded'>;
}
