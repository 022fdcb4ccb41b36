import type { Batch, BatchRef } from '../../../src/core/batch.js';
import { type Purchase, purchaseKey } from '../../../src/core/purchase.js';
import type { Sale } from '../../../src/core/sale.js';
import type {
  ResolveVerdict,
  DeductVerdict,
  SetStateOutcome,
  StoredSale,
  PrecheckVerdict,
  RequestLook,
  SaleStore,
  StockStore,
} from '../../../src/core/ports/stock-store.js';
import type { AskedBucket, BucketRef } from '../../../src/core/bucket.js';
import type { LoadedSale, MemoryBucket } from './memory-bucket.js';
import { judge, shutBy } from './memory-judge.js';
import { MemoryServer } from './memory-redis-server.js';

/** An `aborted` marker is kept this long, as in Redis. */
const ABORTED_LIFE_MS = 24 * 60 * 60 * 1000;

/** What buyers and the owner of a sale use of the ledger in memory. */
export class MemoryStock extends MemoryServer implements StockStore, SaleStore {
  /** How often each method ran, whether its reply arrived or not. */
  readonly calls = { precheck: 0, deduct: 0, decide: 0, settle: 0, release: 0, claim: 0, acceptedKeys: 0 };

  async precheck(ref: AskedBucket, purchases: readonly Purchase[]): Promise<PrecheckVerdict> {
    this.failOn('precheck_fails');
    this.calls.precheck++;
    const bucket = this.bucket(ref);
    const { sale } = bucket;
    const shut = this.isSure(sale) && !isResharded(sale, ref) ? shutBy(sale, this.nowMs) : 'loading';
    return {
      epoch: sale?.epoch ?? 0,
      unitsLeft: shut === null ? bucket.unitsLeft : null,
      buckets: sale?.buckets ?? null,
      answers: judge(bucket, purchases, { shut, refuseTwins: false }).answers,
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
    if (sale === null) return { outcome: 'not_warmed' };
    if (!this.isSure(sale) || sale.epoch !== batch.epoch) return { outcome: 'stale_epoch' };

    const shut = shutBy(sale, this.nowMs);
    const { answers, unitsLeft } = judge(bucket, batch.purchases, { shut, refuseTwins: true });
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
    if (this.isBroken('decide_lost')) return 'outcome_unknown';
    this.calls.decide++;
    const verdict = this.#decide(ref);
    return this.isBroken('decide_reply_lost') ? 'outcome_unknown' : verdict;
  }

  #decide(ref: BatchRef): ResolveVerdict {
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
    bucket.markers.set(batchId, { kind: 'aborted', untilMs: this.nowMs + ABORTED_LIFE_MS });
  }

  async findRequest(ref: AskedBucket, userId: string, requestId: string): Promise<RequestLook> {
    this.failOn('read_fails');
    const { sale, requests } = this.bucket(ref);
    if (!this.isSure(sale) || isResharded(sale, ref)) return 'unsure';
    return requests.get(purchaseKey({ userId, requestId })) ?? null;
  }

  async *acceptedKeys(ref: BucketRef): AsyncGenerator<string[]> {
    this.failOn('read_fails');
    this.calls.acceptedKeys++;
    yield [...this.bucket(ref).requests.keys()];
  }

  async acceptedCount(ref: BucketRef): Promise<number> {
    this.failOn('read_fails');
    return this.bucket(ref).requests.size;
  }

  async readSale(ref: AskedBucket): Promise<StoredSale | null> {
    this.failOn('read_fails');
    const { sale, unitsLeft } = this.bucket(ref);
    if (sale === null || sale.epoch === 0 || isResharded(sale, ref)) return null; // 0: it was lost, and a repair has begun
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

  #bucketsOf({ saleId, buckets }: Sale): MemoryBucket[] {
    return Array.from({ length: buckets }, (_, bucket) => this.bucket({ saleId, bucket }));
  }
}

/** Whoever asks knows another number of buckets. */
const isResharded = (sale: LoadedSale, { buckets }: AskedBucket): boolean =>
  buckets !== undefined && sale.buckets !== undefined && sale.buckets !== buckets;
