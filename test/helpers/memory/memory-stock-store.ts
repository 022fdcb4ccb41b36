import type { OperationalError } from '../../../src/core/errors.js';
import type { Batch, BatchRef } from '../../../src/core/batch.js';
import { type Purchase, purchaseKey } from '../../../src/core/purchase.js';
import type { StoreAnswer } from '../../../src/core/outcome.js';
import type { Sale } from '../../../src/core/sale.js';
import type {
  ResolveVerdict,
  DeductVerdict,
  SetStateOutcome,
  StoredSale,
  PrecheckVerdict,
  SaleStore,
  StockStore,
} from '../../../src/core/ports/stock-store.js';
import type { AskedBucket, BucketRef, SaleBuckets } from '../../../src/core/bucket.js';
import { MemoryBucket, type LoadedSale } from './memory-bucket.js';
import { MemoryRedisServer } from './memory-redis-server.js';
import type { BUCKET_EDITED, BucketEdit } from '../../../src/core/ports/sale-edits.js';

/** A marker is kept this long after the end of its batch, as in Redis. */
export const MARKER_LIFE_MS = 4 * 24 * 3_600_000;

/** The stock and states of sales in a Redis in memory, for purchases and sale owners. */
export class MemoryStockStore extends MemoryRedisServer implements StockStore, SaleStore {
  /** Counts the calls of each method, whether the reply arrived or not. */
  readonly calls = {
    precheck: 0,
    deduct: 0,
    resolve: 0,
    markRecorded: 0,
    release: 0,
    reacquire: 0,
    acceptedBuyers: 0,
  };

  async precheck(ref: AskedBucket, purchases: readonly Purchase[]): Promise<PrecheckVerdict> {
    this.failOn('precheck_fails');
    this.calls.precheck++;
    const bucket = this.bucket(ref);
    const { sale } = bucket;
    const closed = this.isSure(sale) && !isResharded(sale, ref) ? closedBy(sale, this.nowMs) : 'loading';
    return {
      epoch: sale?.epoch ?? 0,
      unitsLeft: closed === null ? bucket.unitsLeft : null,
      buckets: sale?.buckets ?? null,
      answers: judgePurchases(bucket, purchases, closed).answers,
    };
  }

  async deduct(batch: Batch): Promise<DeductVerdict> {
    if (this.isBroken('deduct_lost')) return { outcome: 'outcome_unknown' };
    this.calls.deduct++;
    const verdict = this.#deduct(batch);
    return this.isBroken('deduct_reply_lost') ? { outcome: 'outcome_unknown' } : verdict;
  }

  #deduct(batch: Batch): DeductVerdict {
    const bucket = this.bucket(batch);
    const { sale } = bucket;
    const marker = bucket.marker(batch.batchId, this.nowMs);
    if (marker) return { outcome: marker.kind === 'deducted' ? 'already_deducted' : marker.kind };
    try {
      this.decode(batch);
    } catch (error) {
      return { outcome: 'errored', error: error as OperationalError };
    }
    if (sale === null) return { outcome: 'not_warmed' };
    if (!this.isSure(sale) || sale.epoch !== batch.epoch) return { outcome: 'stale_epoch' };

    const closed = closedBy(sale, this.nowMs);
    const { answers, unitsLeft } = judgePurchases(bucket, batch.purchases, closed, { refuseDuplicates: true });
    if (answers.some((answer) => answer !== null)) {
      this.#abort(bucket, batch);
      return { outcome: 'refused', answers };
    }
    this.aboutToWrite(bucket);
    bucket.unitsLeft = unitsLeft;
    for (const purchase of batch.purchases) {
      const { batchId } = batch;
      bucket.requests.set(purchaseKey(purchase), { state: 'held', batchId, quantity: purchase.quantity });
    }
    bucket.markers.set(batch.batchId, { kind: 'deducted', body: batch.body });
    bucket.pending.set(batch.batchId, this.nowMs);
    return { outcome: 'deducted' };
  }

  async resolve(ref: BatchRef): Promise<ResolveVerdict> {
    if (this.isBroken('resolve_lost')) return 'outcome_unknown';
    this.calls.resolve++;
    const verdict = this.#resolve(ref);
    if (verdict === 'no_answer') this.asks.add(ref.saleId);
    return this.isBroken('resolve_reply_lost') ? 'outcome_unknown' : verdict;
  }

  #resolve(ref: BatchRef): ResolveVerdict {
    const bucket = this.bucket(ref);
    const marker = bucket.marker(ref.batchId, this.nowMs);
    if (marker) return marker.kind;
    const { sale } = bucket;
    if (!this.isSure(sale) || ref.epoch > sale.epoch) return 'no_answer';
    if (ref.epoch < sale.epoch) return 'outlived';
    this.#abort(bucket, ref);
    return 'aborted';
  }

  #abort(bucket: MemoryBucket, { batchId }: BatchRef): void {
    this.aboutToWrite(bucket);
    bucket.markers.set(batchId, { kind: 'aborted', untilMs: this.nowMs + MARKER_LIFE_MS });
  }

  async findRequest(ref: AskedBucket, userId: string, requestId: string): ReturnType<StockStore['findRequest']> {
    this.failOn('read_fails');
    const { sale, requests } = this.bucket(ref);
    if (!this.isSure(sale) || isResharded(sale, ref)) return 'unsure';
    return requests.get(purchaseKey({ userId, requestId })) ?? null;
  }

  async askForRepair(saleId: string): Promise<void> {
    this.asks.add(saleId);
  }

  async *acceptedBuyers(ref: BucketRef): AsyncGenerator<string[]> {
    this.failOn('read_fails');
    this.calls.acceptedBuyers++;
    yield [...this.bucket(ref).acceptedBuyers()];
  }

  async acceptedBuyerCount(ref: BucketRef): Promise<number> {
    this.failOn('read_fails');
    return this.bucket(ref).acceptedBuyers().size;
  }

  async readSale(ref: AskedBucket): Promise<StoredSale | null> {
    this.failOn('read_fails');
    const { sale, unitsLeft } = this.bucket(ref);
    // 0: the bucket was lost, and a repair has begun
    if (sale === null || sale.epoch === 0 || isResharded(sale, ref)) return null;
    const { epoch, opensAtMs, closesAtMs } = sale;
    return {
      state: this.isSure(sale) ? sale.state : 'repair',
      epoch,
      unitsLeft,
      opensAtMs,
      closesAtMs,
      nowMs: this.nowMs,
    };
  }

  async warm(sale: Sale): Promise<'warmed' | 'already_warm'> {
    let outcome: 'warmed' | 'already_warm' = 'already_warm';
    for (const [index, bucket] of this.#bucketsOf(sale).entries()) {
      if (bucket.sale !== null) continue;
      const { epoch, opensAtMs, closesAtMs, limitPerBuyer, buckets } = sale;
      this.aboutToWrite(bucket);
      bucket.sale = { state: 'warm', epoch, stamp: this.runId, opensAtMs, closesAtMs, limitPerBuyer, buckets };
      bucket.unitsLeft = Math.ceil((sale.stock - index) / sale.buckets);
      outcome = 'warmed';
    }
    return outcome;
  }

  async setState(sale: Sale, state: 'warm' | 'open' | 'paused' | 'closed'): Promise<SetStateOutcome> {
    for (const bucket of this.#bucketsOf(sale)) {
      if (bucket.sale === null) return 'not_warmed';
      if (bucket.sale.state === 'repair') return 'repairing';
      if (bucket.sale.state === 'closed' && state !== 'closed') return 'closed';
      this.aboutToWrite(bucket);
      bucket.sale.state = state;
    }
    return 'set';
  }

  async edit(ref: BucketRef, edit: BucketEdit): Promise<(typeof BUCKET_EDITED)[number]> {
    this.failOn('edit_fails');
    const word = this.#edit(this.bucket(ref), edit);
    this.failOn('edit_reply_lost');
    return word;
  }

  #edit(bucket: MemoryBucket, { editId, epoch, units, closesAtMs, isLast }: BucketEdit) {
    const { sale } = bucket;
    if (!this.isSure(sale) || sale.epoch < epoch) return 'unavailable';
    if (sale.epoch > epoch) return 'moved';
    const id = Number(editId);
    if (sale.edit?.epoch === epoch && sale.edit.id >= id) return sale.edit.id === id ? sale.edit.word : 'done';
    const isEnough = bucket.unitsLeft + units >= 0;
    if (!isEnough && !isLast) return 'not_enough';
    this.aboutToWrite(bucket);
    const word = isEnough ? 'done' : 'refused';
    bucket.sale = { ...sale, edit: { id, epoch, word }, ...(isEnough ? { closesAtMs } : {}) };
    if (isEnough) bucket.unitsLeft += units;
    return word;
  }

  async forget(sale: SaleBuckets): Promise<void> {
    for (const bucket of this.#bucketsOf(sale)) {
      this.aboutToWrite(bucket);
      const { markers } = bucket;
      bucket.replaceBy(new MemoryBucket());
      bucket.markers = markers; // the markers expire by themselves
    }
  }

  #bucketsOf({ saleId, buckets }: SaleBuckets): MemoryBucket[] {
    return Array.from({ length: buckets }, (_, bucket) => this.bucket({ saleId, bucket }));
  }
}

/** Returns whether the caller has a different number of buckets. */
const isResharded = (sale: LoadedSale, { buckets }: AskedBucket): boolean =>
  buckets !== undefined && sale.buckets !== undefined && sale.buckets !== buckets;

/** Returns why no purchase is accepted now, or null in an open sale inside its window. */
function closedBy(sale: LoadedSale, nowMs: number): 'paused' | 'closed' | 'not_open' | null {
  if (sale.state === 'paused') return 'paused';
  if (sale.state === 'closed' || nowMs >= sale.closesAtMs) return 'closed';
  return sale.state === 'open' && nowMs >= sale.opensAtMs ? null : 'not_open';
}

/**
 * Judges purchases in order. An earlier purchase takes units from later purchases.
 * @returns one answer per purchase, null if it is not refused, and the units left after all of them
 */
function judgePurchases(
  bucket: MemoryBucket,
  purchases: readonly Purchase[],
  closed: 'loading' | ReturnType<typeof closedBy>,
  { refuseDuplicates = false } = {},
): { answers: (StoreAnswer | null)[]; unitsLeft: number } {
  const bought = bucket.unitsByBuyer();
  const accepted = new Set<string>();
  let { unitsLeft } = bucket;
  const answerOf = (purchase: Purchase): StoreAnswer | null => {
    if (closed === 'loading') return { outcome: closed }; // stored data may be outdated
    const entry = bucket.requests.get(purchaseKey(purchase));
    if (entry?.quantity === purchase.quantity) return { outcome: 'replayed', entry };
    if (entry || (refuseDuplicates && accepted.has(purchaseKey(purchase)))) return { outcome: 'request_conflict' };
    if (closed) return { outcome: closed };
    const total = (bought.get(purchase.userId) ?? 0) + purchase.quantity;
    if (total > (bucket.sale?.limitPerBuyer ?? 0)) return { outcome: 'limit_reached' };
    if (purchase.quantity > unitsLeft) return { outcome: 'sold_out' };
    bought.set(purchase.userId, total);
    accepted.add(purchaseKey(purchase));
    unitsLeft -= purchase.quantity;
    return null;
  };
  return { answers: purchases.map(answerOf), unitsLeft };
}
