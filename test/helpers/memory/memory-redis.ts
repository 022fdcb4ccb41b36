import { bucketsOfBatch, type Batch } from '../../../src/core/batch.js';
import { OperationalError, SaleInRepair } from '../../../src/core/errors.js';
import { batchOfEntry } from '../../../src/core/outcome.js';
import { lostIn } from '../sales.js';
import { purchaseKey } from '../../../src/core/purchase.js';
import { homeBucket, type BucketRef } from '../../../src/core/bucket.js';
import type {
  DueBatches,
  Reacquired,
  PendingBatch,
  PendingBuckets,
  Release,
  LiveOrder,
  BatchStore,
  Unparked,
} from '../../../src/core/ports/batch-store.js';
import type { OrderNotification } from '../../../src/core/order-notifications.js';
import type { MemoryBucket } from './memory-bucket.js';
import { MemoryPurchaseNotifications } from './memory-purchase-notifications.js';
import { MARKER_LIFE_MS, MemoryStockStore } from './memory-stock-store.js';
import { partial } from '../partial.js';

/**
 * A Redis with sales, stock and batches in memory, on an injected clock, with the same words and the same precedence as
 * the scripts. It is written from the rules of the ports instead of the Lua text, so that each can be tested against
 * the other. It keeps no count per buyer: a buyer holds the sum of their requests, which must equal the count in Redis.
 */
export class MemoryRedis extends MemoryStockStore implements BatchStore {
  /** Receives notifications for waiting buyers from the write that marks a batch recorded. */
  readonly notifications = new MemoryPurchaseNotifications();

  async markRecorded(
    recorded: readonly { readonly batch: Batch; readonly orders: readonly LiveOrder[] }[],
  ): Promise<void> {
    this.failOn('mark_recorded_fails');
    this.calls.markRecorded++;
    let refused = 0;
    for (const { batch, orders } of recorded) {
      for (const ref of this.#refsOf(batch)) {
        if (this.#isInRepair(ref)) refused++;
        else this.#markRecorded(ref, batch, orders);
      }
    }
    if (refused > 0) throw new SaleInRepair('mark batches as recorded');
    this.failOn('mark_recorded_reply_lost');
  }

  /** Returns every bucket that may hold requests of the batch. */
  #refsOf(batch: Batch): BucketRef[] {
    const { epoch = 0, buckets = 0 } = this.bucket(batch).sale ?? {};
    return bucketsOfBatch(batch, { epoch, buckets }).map((bucket) => ({ saleId: batch.saleId, bucket }));
  }

  #markRecorded(ref: BucketRef, batch: Batch, orders: readonly LiveOrder[]): void {
    const bucket = this.bucket(ref);
    this.aboutToWrite(bucket);
    const moved: OrderNotification[] = [];
    for (const order of orders) {
      const entry = bucket.requests.get(purchaseKey(order));
      if (entry?.state !== 'held' || entry.batchId !== batch.batchId) continue;
      const { quantity } = entry;
      bucket.requests.set(purchaseKey(order), { state: 'ordered', orderId: order.orderId, quantity });
      moved.push({ ...order, reason: null });
    }
    bucket.pending.delete(batch.batchId);
    const marker = bucket.marker(batch.batchId, this.nowMs);
    if (marker && marker.untilMs === undefined) {
      bucket.markers.set(batch.batchId, { kind: marker.kind, body: null, untilMs: this.nowMs + MARKER_LIFE_MS });
    }
    if (moved.length > 0 && moved.length === orders.length) void this.notifications.send(ref.saleId, moved);
  }

  async reacquire(batch: Batch, epoch: number, recorded: ReadonlySet<string>): Promise<Reacquired> {
    this.failOn('reacquire_fails');
    this.calls.reacquire++;
    const reacquired = this.#reacquireEverywhere(batch, epoch, recorded);
    if (reacquired.outcome !== 'claimed') this.asks.add(batch.saleId);
    this.failOn('reacquire_reply_lost');
    return reacquired;
  }

  #reacquireEverywhere(batch: Batch, epoch: number, recorded: ReadonlySet<string>): Reacquired {
    const { sale } = this.bucket(batch);
    const buckets = sale?.epoch === epoch ? (sale.buckets ?? 0) : 0;
    const homeOf = (userId: string): number => (buckets > 1 ? homeBucket(userId, buckets) : batch.bucket);
    const [lost, elsewhere] = [new Set<string>(), new Set<string>()];
    for (const bucket of new Set([batch.bucket, ...batch.purchases.map(({ userId }) => homeOf(userId))])) {
      const others = batch.purchases.filter(({ userId }) => homeOf(userId) !== bucket).map(purchaseKey);
      const part = this.#reacquire({ saleId: batch.saleId, bucket }, batch, epoch, new Set([...recorded, ...others]));
      if (part.outcome !== 'claimed') return part;
      for (const key of part.lost) lost.add(key);
      for (const key of part.elsewhere) elsewhere.add(key);
    }
    return { outcome: 'claimed', lost, elsewhere };
  }

  #reacquire(ref: BucketRef, batch: Batch, epoch: number, recorded: ReadonlySet<string>): Reacquired {
    const bucket = this.bucket(ref);
    const { sale } = bucket;
    if (sale === null) return { outcome: 'not_warmed' };
    if (!this.isSure(sale) || sale.epoch !== epoch) return { outcome: 'unavailable' };
    this.decode(batch);
    this.aboutToWrite(bucket);
    const { batchId, body } = batch;
    const [lost, elsewhere] = [new Set<string>(), new Set<string>()];
    for (const { userId, requestId, quantity } of batch.purchases) {
      const key = purchaseKey({ userId, requestId });
      if (recorded.has(key)) continue;
      const entry = bucket.requests.get(key);
      if (entry?.state === 'released' && batchOfEntry(entry) !== null) lost.add(key);
      if (entry?.state === 'held' && entry.batchId !== batchId) elsewhere.add(key);
      if (entry !== undefined) continue;
      const total = (bucket.unitsByBuyer().get(userId) ?? 0) + quantity;
      if (quantity > bucket.unitsLeft || total > sale.limitPerBuyer) {
        lost.add(key);
        bucket.requests.set(key, { state: 'released', orderId: lostIn(batchId), quantity });
        continue;
      }
      bucket.unitsLeft -= quantity;
      bucket.requests.set(key, { state: 'held', batchId, quantity });
    }
    const marker = bucket.marker(batchId, this.nowMs) ?? { kind: 'claimed', body };
    bucket.markers.set(batchId, marker);
    const canBeSent = marker.kind !== 'aborted' && marker.body !== null;
    if (canBeSent && !bucket.pending.has(batchId)) bucket.pending.set(batchId, this.nowMs);
    return { outcome: 'claimed', lost, elsewhere };
  }

  async release(releases: readonly Release[]): Promise<('released' | 'nothing')[]> {
    this.failOn('release_fails');
    this.calls.release++;
    const words = releases.map((release) => {
      const { state, buckets } = this.bucket({ saleId: release.saleId, bucket: 0 }).sale ?? {};
      const bucket = buckets === undefined ? release.bucket : homeBucket(release.userId, buckets);
      const present = { ...release, bucket };
      return state === 'repair' || this.#isInRepair(present) ? null : this.#release(present);
    });
    const done = words.filter((word) => word !== null);
    if (done.length < words.length) throw new SaleInRepair('release');
    this.failOn('release_reply_lost');
    return done;
  }

  #release({ userId, requestId, orderId, batchId, withUnits, ...ref }: Release): 'released' | 'nothing' {
    const bucket = this.bucket(ref);
    const key = purchaseKey({ userId, requestId });
    const entry = bucket.requests.get(key);
    if (!entry || entry.state === 'released') return 'nothing';
    if (entry.state === 'held' && batchId !== '' && entry.batchId !== batchId) return 'nothing';
    this.aboutToWrite(bucket);
    bucket.requests.set(key, { state: 'released', orderId, quantity: entry.quantity });
    if (withUnits) bucket.unitsLeft += entry.quantity;
    return 'released';
  }

  async stalePending(
    ref: BucketRef,
    olderThanMs: number,
    max: number,
    wanted?: Parameters<BatchStore['stalePending']>[3],
    skip = 0,
  ): Promise<PendingBatch[]> {
    this.failOn('read_fails');
    this.reach(ref);
    const stale = this.#stale(this.bucket(ref), olderThanMs).slice(skip, skip + max);
    if (wanted === undefined || stale.length === 0) return stale;
    const those = await wanted(stale.map(({ batchId }) => batchId));
    this.reach(ref);
    return this.#stale(this.bucket(ref), olderThanMs).filter(({ batchId }) => those.has(batchId));
  }

  #stale(bucket: MemoryBucket, olderThanMs: number): PendingBatch[] {
    return bucket
      .pendingOldestFirst()
      .filter(([, sinceMs]) => sinceMs <= this.nowMs - olderThanMs)
      .map(([batchId, sinceMs]) => {
        const marker = bucket.marker(batchId, this.nowMs);
        const body = marker && marker.kind !== 'aborted' ? marker.body : null;
        return { batchId, ageMs: this.nowMs - sinceMs, body };
      });
  }

  /** Takes from all batches in one call. */
  async takeDue(
    ref: BucketRef,
    { olderThanMs, leaseMs, max, fromMs }: Parameters<BatchStore['takeDue']>[1],
  ): Promise<DueBatches> {
    this.failOn('read_fails');
    this.reach(ref);
    const bucket = this.bucket(ref);
    const { redrives } = bucket;
    const stale = this.#stale(bucket, olderThanMs);
    const isOver = ({ batchId }: PendingBatch): boolean => (redrives.get(batchId) ?? Infinity) <= this.nowMs;
    const isNew = ({ batchId, ageMs }: PendingBatch): boolean => !redrives.has(batchId) && this.nowMs - ageMs >= fromMs;
    const due = [...stale.filter(isOver), ...stale.filter(isNew)];
    const batches = due.slice(0, max);
    for (const { batchId } of batches) redrives.set(batchId, this.nowMs + leaseMs);
    for (const [batchId, untilMs] of redrives) if (untilMs <= this.nowMs) redrives.delete(batchId);
    return { batches, nextFromMs: fromMs, more: due.length > max };
  }

  async leaveAlone(ref: BucketRef, pauses: Parameters<BatchStore['leaveAlone']>[1]): Promise<void> {
    this.failOn('leave_alone_fails');
    this.reach(ref);
    const { redrives } = this.bucket(ref);
    for (const { batchId, forMs } of pauses) {
      redrives.set(batchId, Math.max(redrives.get(batchId) ?? 0, this.nowMs + forMs));
    }
  }

  async withPending(refs: readonly BucketRef[]): Promise<PendingBuckets> {
    if (this.isBroken('read_fails'))
      return { refs: [], faults: [new OperationalError('redis', 'read_fails', { retryable: true })] };
    return {
      refs: refs.filter((ref) => this.faultOf(ref) === null && this.bucket(ref).pending.size > 0),
      faults: refs.map((ref) => this.faultOf(ref)).filter((fault) => fault !== null),
    };
  }

  async pendingSummary(ref: BucketRef): Promise<{ batches: number; oldestMs: number }> {
    this.failOn('read_fails');
    this.reach(ref);
    const pending = this.bucket(ref).pendingOldestFirst();
    const [oldest] = pending;
    return { batches: pending.length, oldestMs: oldest ? this.nowMs - oldest[1] : 0 };
  }

  async overduePending(ref: BucketRef, afterMs: number): Promise<{ batches: number; oldestMs: number }> {
    this.failOn('read_fails');
    this.reach(ref);
    const late = this.bucket(ref)
      .pendingOldestFirst()
      .map(([, sinceMs]) => this.nowMs - sinceMs - afterMs)
      .filter((lateMs) => lateMs > 0);
    return { batches: late.length, oldestMs: late[0] ?? 0 };
  }

  async park(batch: Batch): Promise<void> {
    for (const ref of this.#refsOf(batch)) {
      const bucket = this.bucket(ref);
      this.aboutToWrite(bucket);
      bucket.pending.delete(batch.batchId);
      bucket.redrives.delete(batch.batchId);
    }
  }

  async heldElsewhere(batch: Batch): Promise<Set<string>> {
    this.failOn('read_fails');
    const { buckets = 1 } = this.bucket(batch).sale ?? {};
    const others = batch.purchases.filter(({ userId, requestId }) => {
      const bucket = buckets > 1 ? homeBucket(userId, buckets) : batch.bucket;
      const entry = this.bucket({ saleId: batch.saleId, bucket }).requests.get(purchaseKey({ userId, requestId }));
      return entry?.state === 'held' && entry.batchId !== batch.batchId;
    });
    return new Set(others.map(purchaseKey));
  }

  async unpark(batch: Batch): Promise<Unparked> {
    this.failOn('unpark_fails');
    const words = this.#refsOf(batch).map((ref) => this.#unpark(ref, batch));
    if (words[0] === 'unknown') this.asks.add(batch.saleId);
    return words[0] as Unparked; // the answer of the bucket that the batch names
  }

  #unpark(ref: BucketRef, batch: Batch): Unparked {
    const bucket = this.bucket(ref);
    const marker = bucket.marker(batch.batchId, this.nowMs);
    if (marker === null) return 'unknown';
    if (marker.kind === 'aborted') return 'aborted';
    if (marker.body === null) return 'recorded';
    if (bucket.pending.has(batch.batchId)) return 'already_pending';
    this.aboutToWrite(bucket);
    bucket.pending.set(batch.batchId, this.nowMs);
    return 'unparked';
  }

  #isInRepair(ref: BucketRef): boolean {
    return this.bucket(ref).sale?.state === 'repair';
  }
}

/** A batch store in which every older batch finds its units, for tests about MySQL. */
export const reacquiringStore: BatchStore = partial({
  reacquire: async () => ({ outcome: 'claimed', lost: new Set(), elsewhere: new Set() }),
});
