import type { Batch, BatchRef } from '../../../src/domain/batch.js';
import { OperationalError } from '../../../src/domain/errors.js';
import type { LedgerAnswer, RequestEntry } from '../../../src/domain/outcome.js';
import { purchaseKey, type Purchase } from '../../../src/domain/purchase.js';
import type { Sale } from '../../../src/domain/sale.js';
import type { Clock } from '../../../src/ports/clock.js';
import type {
  PendingBatch,
  Release,
  Settlement,
  SettlementLedger,
  Unparked,
} from '../../../src/ports/settlement-ledger.js';
import type {
  BucketRef,
  DecideVerdict,
  DeductVerdict,
  GateOutcome,
  LedgerSale,
  PrecheckVerdict,
  SaleLedger,
  StockLedger,
} from '../../../src/ports/stock-ledger.js';
import { MemoryBucket, type LoadedSale } from './memory-bucket.js';
import { ManualClock } from './manual-clock.js';

/** The faults that a test can order, each for the next call of its kind. `…_lost` never arrives, `…_reply_lost` does. */
export type LedgerFault =
  | 'precheck_fails'
  | 'deduct_lost'
  | 'deduct_reply_lost'
  | 'decide_lost'
  | 'decide_reply_lost'
  | 'read_fails'
  | 'settle_fails'
  | 'settle_reply_lost'
  | 'release_fails'
  | 'release_reply_lost'
  | 'unpark_fails';

/** An `aborted` marker is kept this long, as in Redis. */
const ABORTED_LIFE_MS = 24 * 60 * 60 * 1000;

/**
 * The ledger in memory: same words, same precedence as the scripts, on an injected clock. It is written from the rules
 * of the ports and not from the Lua text, so that one can be tried against the other. It keeps no count per buyer: what
 * a buyer holds is the sum of his requests, which is what Redis has to come to.
 */
export class MemoryLedger implements StockLedger, SaleLedger, SettlementLedger {
  readonly clock: Clock;
  readonly #buckets = new Map<string, MemoryBucket>();
  readonly #faults: LedgerFault[] = [];
  /** How often each method ran, whether its reply arrived or not. */
  readonly calls = { precheck: 0, deduct: 0, decide: 0, settle: 0, release: 0, acceptedKeys: 0 };

  constructor(options: { readonly clock?: Clock } = {}) {
    this.clock = options.clock ?? new ManualClock();
  }

  /** The next call that the fault fits fails; several are kept in order. */
  breakNext(...faults: LedgerFault[]): void {
    this.#faults.push(...faults);
  }

  /** Where a test looks, and plants what only a repair, a later epoch or a disaster would leave. */
  bucket({ saleId, bucket }: BucketRef): MemoryBucket {
    const name = `${saleId}:${bucket}`;
    let found = this.#buckets.get(name);
    if (!found) this.#buckets.set(name, (found = new MemoryBucket()));
    return found;
  }

  async precheck(ref: BucketRef, purchases: readonly Purchase[]): Promise<PrecheckVerdict> {
    this.#failOn('precheck_fails');
    this.calls.precheck++;
    const bucket = this.bucket(ref);
    const shut = shutBy(bucket.sale, this.#now);
    return {
      epoch: bucket.sale?.epoch ?? 0,
      unitsLeft: shut === null ? bucket.unitsLeft : null,
      answers: judge(bucket, purchases, { shut, refuseTwins: false }).answers,
    };
  }

  async deduct(batch: Batch): Promise<DeductVerdict> {
    if (this.#isBroken('deduct_lost')) return { outcome: 'outcome_unknown' };
    this.calls.deduct++;
    const verdict = this.#deduct(batch);
    return this.#isBroken('deduct_reply_lost') ? { outcome: 'outcome_unknown' } : verdict;
  }

  #deduct(batch: Batch): DeductVerdict {
    const bucket = this.bucket(batch);
    const { sale } = bucket;
    const marker = bucket.marker(batch.batchId, this.#now);
    if (marker) return { outcome: marker.kind === 'deducted' ? 'already_deducted' : marker.kind };
    if (sale === null) return { outcome: 'not_warmed' };
    if (sale.state === 'repair' || sale.epoch !== batch.epoch) return { outcome: 'stale_epoch' };

    const shut = shutBy(sale, this.#now);
    const { answers, unitsLeft } = judge(bucket, batch.purchases, { shut, refuseTwins: true });
    if (answers.some((answer) => answer !== null)) {
      bucket.markers.set(batch.batchId, { kind: 'aborted', untilMs: this.#now + ABORTED_LIFE_MS });
      return { outcome: 'refused', answers };
    }
    bucket.unitsLeft = unitsLeft;
    for (const purchase of batch.purchases) {
      const { batchId } = batch;
      bucket.requests.set(purchaseKey(purchase), { state: 'held', batchId, quantity: purchase.quantity });
    }
    bucket.markers.set(batch.batchId, { kind: 'deducted', body: batch.body });
    bucket.pending.set(batch.batchId, this.#now);
    return { outcome: 'deducted' };
  }

  async decide(ref: BatchRef): Promise<DecideVerdict> {
    if (this.#isBroken('decide_lost')) return 'outcome_unknown';
    this.calls.decide++;
    const verdict = this.#decide(ref);
    return this.#isBroken('decide_reply_lost') ? 'outcome_unknown' : verdict;
  }

  #decide(ref: BatchRef): DecideVerdict {
    const bucket = this.bucket(ref);
    const marker = bucket.marker(ref.batchId, this.#now);
    if (marker) return marker.kind;
    const { sale } = bucket;
    if (sale === null || sale.state === 'repair' || sale.epoch !== ref.epoch) return 'no_answer';
    bucket.markers.set(ref.batchId, { kind: 'aborted', untilMs: this.#now + ABORTED_LIFE_MS });
    return 'aborted';
  }

  async findRequest(ref: BucketRef, userId: string, requestId: string): Promise<RequestEntry | null> {
    this.#failOn('read_fails');
    return this.bucket(ref).requests.get(purchaseKey({ userId, requestId })) ?? null;
  }

  async *acceptedKeys(ref: BucketRef): AsyncGenerator<string[]> {
    this.#failOn('read_fails');
    this.calls.acceptedKeys++;
    yield [...this.bucket(ref).requests.keys()];
  }

  async acceptedCount(ref: BucketRef): Promise<number> {
    this.#failOn('read_fails');
    return this.bucket(ref).requests.size;
  }

  async readSale(ref: BucketRef): Promise<LedgerSale | null> {
    this.#failOn('read_fails');
    const { sale, unitsLeft } = this.bucket(ref);
    if (sale === null) return null;
    const { state, epoch, opensAtMs, closesAtMs } = sale;
    return { state, epoch, unitsLeft, opensAtMs, closesAtMs, nowMs: this.#now };
  }

  async warm(sale: Sale): Promise<'warmed' | 'already_warm'> {
    let outcome: 'warmed' | 'already_warm' = 'already_warm';
    for (const [index, bucket] of this.#bucketsOf(sale).entries()) {
      if (bucket.sale !== null) continue;
      const { epoch, opensAtMs, closesAtMs, limitPerBuyer } = sale;
      bucket.sale = { state: 'warm', epoch, opensAtMs, closesAtMs, limitPerBuyer };
      bucket.unitsLeft = Math.ceil((sale.stock - index) / sale.buckets);
      outcome = 'warmed';
    }
    return outcome;
  }

  async gate(sale: Sale, state: 'warm' | 'open' | 'paused' | 'closed'): Promise<GateOutcome> {
    for (const bucket of this.#bucketsOf(sale)) {
      if (bucket.sale === null) return 'not_warmed';
      if (bucket.sale.state === 'repair') return 'repairing';
      if (bucket.sale.state === 'closed' && state !== 'closed') return 'closed';
      bucket.sale.state = state;
    }
    return 'gated';
  }

  async settle(settled: readonly { readonly batch: Batch; readonly orders: readonly Settlement[] }[]): Promise<void> {
    this.#failOn('settle_fails');
    this.calls.settle++;
    for (const { batch, orders } of settled) {
      const bucket = this.bucket(batch);
      for (const order of orders) {
        const entry = bucket.requests.get(purchaseKey(order));
        if (entry?.state !== 'held' || entry.batchId !== batch.batchId) continue;
        const { quantity } = entry;
        bucket.requests.set(purchaseKey(order), { state: 'ordered', orderId: order.orderId, quantity });
      }
      bucket.pending.delete(batch.batchId);
      const marker = bucket.marker(batch.batchId, this.#now);
      if (marker && marker.kind !== 'aborted') marker.body = null;
    }
    this.#failOn('settle_reply_lost');
  }

  async release(releases: readonly Release[]): Promise<('released' | 'nothing')[]> {
    this.#failOn('release_fails');
    this.calls.release++;
    const words = releases.map((release) => this.#release(release));
    this.#failOn('release_reply_lost');
    return words;
  }

  #release({ userId, requestId, orderId, batchId, withUnits, ...ref }: Release): 'released' | 'nothing' {
    const bucket = this.bucket(ref);
    const key = purchaseKey({ userId, requestId });
    const entry = bucket.requests.get(key);
    if (!entry || entry.state === 'released') return 'nothing';
    const ours = entry.state === 'held' ? batchId === '' || entry.batchId === batchId : entry.orderId === orderId;
    if (!ours) return 'nothing';
    bucket.requests.set(key, { state: 'released', orderId, quantity: entry.quantity });
    if (withUnits) bucket.unitsLeft += entry.quantity;
    return 'released';
  }

  async stalePending(ref: BucketRef, olderThanMs: number, max: number): Promise<PendingBatch[]> {
    this.#failOn('read_fails');
    const bucket = this.bucket(ref);
    return bucket
      .pendingOldestFirst()
      .filter(([, sinceMs]) => sinceMs <= this.#now - olderThanMs)
      .slice(0, max)
      .map(([batchId, sinceMs]) => {
        const marker = bucket.marker(batchId, this.#now);
        const body = marker && marker.kind !== 'aborted' ? marker.body : null;
        return { batchId, ageMs: this.#now - sinceMs, body };
      });
  }

  async withPending(refs: readonly BucketRef[]): Promise<BucketRef[]> {
    this.#failOn('read_fails');
    return refs.filter((ref) => this.bucket(ref).pending.size > 0);
  }

  async pendingSummary(ref: BucketRef): Promise<{ batches: number; oldestMs: number }> {
    this.#failOn('read_fails');
    const pending = this.bucket(ref).pendingOldestFirst();
    const [oldest] = pending;
    return { batches: pending.length, oldestMs: oldest ? this.#now - oldest[1] : 0 };
  }

  async latePending(ref: BucketRef, afterMs: number): Promise<{ batches: number; oldestMs: number }> {
    this.#failOn('read_fails');
    const late = this.bucket(ref)
      .pendingOldestFirst()
      .map(([, sinceMs]) => this.#now - sinceMs - afterMs)
      .filter((lateMs) => lateMs > 0);
    return { batches: late.length, oldestMs: late[0] ?? 0 };
  }

  async park(batch: Batch): Promise<void> {
    this.bucket(batch).pending.delete(batch.batchId);
  }

  async unpark(batch: Batch): Promise<Unparked> {
    this.#failOn('unpark_fails');
    const bucket = this.bucket(batch);
    const marker = bucket.marker(batch.batchId, this.#now);
    if (marker === null) return 'unknown';
    if (marker.kind === 'aborted') return 'aborted';
    if (marker.body === null) return 'settled';
    if (bucket.pending.has(batch.batchId)) return 'already_pending';
    bucket.pending.set(batch.batchId, this.#now);
    return 'unparked';
  }

  get #now(): number {
    return this.clock.nowMs();
  }

  #bucketsOf({ saleId, buckets }: Sale): MemoryBucket[] {
    return Array.from({ length: buckets }, (_, bucket) => this.bucket({ saleId, bucket }));
  }

  #isBroken(kind: LedgerFault): boolean {
    const index = this.#faults.indexOf(kind);
    if (index >= 0) this.#faults.splice(index, 1);
    return index >= 0;
  }

  #failOn(kind: LedgerFault): void {
    if (this.#isBroken(kind)) throw new OperationalError('redis', kind, { retryable: true });
  }
}

type Shut = 'loading' | 'paused' | 'closed' | 'not_open';

/** Why nobody may buy now; null in an open sale inside its window. */
function shutBy(sale: LoadedSale | null, nowMs: number): Shut | null {
  if (sale === null || sale.state === 'repair') return 'loading';
  if (sale.state === 'paused') return 'paused';
  if (sale.state === 'closed' || nowMs >= sale.closesAtMs) return 'closed';
  return sale.state === 'open' && nowMs >= sale.opensAtMs ? null : 'not_open';
}

/** Who may buy: one answer per purchase, null for a yes, and the units that remain if all who may do. */
function judge(
  bucket: MemoryBucket,
  purchases: readonly Purchase[],
  { shut, refuseTwins }: { shut: Shut | null; refuseTwins: boolean },
): { answers: (LedgerAnswer | null)[]; unitsLeft: number } {
  const bought = bucket.unitsByBuyer();
  const letIn = new Set<string>();
  let { unitsLeft } = bucket;
  const answerOf = (purchase: Purchase): LedgerAnswer | null => {
    const entry = bucket.requests.get(purchaseKey(purchase));
    if (entry?.quantity === purchase.quantity) return { outcome: 'replayed', entry };
    if (entry || (refuseTwins && letIn.has(purchaseKey(purchase)))) return { outcome: 'request_conflict' };
    if (shut) return { outcome: shut };
    const total = (bought.get(purchase.userId) ?? 0) + purchase.quantity;
    if (total > (bucket.sale?.limitPerBuyer ?? 0)) return { outcome: 'limit_reached' };
    if (purchase.quantity > unitsLeft) return { outcome: 'sold_out' };
    bought.set(purchase.userId, total);
    letIn.add(purchaseKey(purchase));
    unitsLeft -= purchase.quantity;
    return null;
  };
  const answers = purchases.map(answerOf);
  return { answers, unitsLeft };
}
