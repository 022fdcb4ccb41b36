import { isLive, type OrderState } from '../../core/order.js';
import { batchOfEntry, type RequestEntry } from '../../core/outcome.js';
import { purchaseKey, splitPurchaseKey } from '../../core/purchase.js';
import type { AgedOrder } from '../../core/ports/reconcile-repository.js';
import type { PendingAge } from '../../core/ports/reconcile-store.js';
import type { BucketRef } from '../../core/bucket.js';
import type { FindingKind } from '../../core/sale-finding.js';
import type { BothSides } from '../../recovery/stale-markers.js';
import type { SaleNotes } from './sale-report.js';

export interface CompareLimits {
  /** Minimum age of a request, ms. A younger one may still be under way and is not judged. */
  readonly safeAgeMs: number;
  /** A batch becomes a finding after this long in the re-drive, ms. */
  readonly waitingMaxMs: number;
  /** Maximum number of requests of one kind that a run reads again, one by one. */
  readonly readsMax: number;
  /** Age after which no check-back can need a marker of a closed sale, ms. */
  readonly markerAgeMs: number;
  /** Age after which an outbox row counts as stuck, ms. */
  readonly outboxAgeMs: number;
}

type RequestKind = Extract<FindingKind, 'leak' | 'order_lost' | 'not_marked' | 'unreleased' | 'unheld'>;

/**
 * The single rule for comparing request by request (I3, I5), at rest or selling: each accepted request has a row. A
 * live row's entry is `ordered`, an ended row's `released`. @param entry null if Redis lacks it
 */
export function compareRequest(
  entry: RequestEntry | null,
  row: { readonly state: OrderState } | undefined,
): RequestKind | 'match' {
  if (row === undefined) {
    if (entry === null) return 'match';
    return entry.state === 'held' ? 'leak' : 'order_lost';
  }
  if (isLive(row.state)) {
    if (entry === null || entry.state === 'released') return 'unheld';
    return entry.state === 'ordered' ? 'match' : 'not_marked';
  }
  return entry === null || entry.state === 'released' ? 'match' : 'unreleased';
}

/** A request for which Redis and MySQL differed when its page was read. */
interface Candidate {
  readonly key: string;
  readonly kind: RequestKind;
  readonly entry: RequestEntry | null;
  readonly row: AgedOrder | undefined;
}

/** Number of single reads between two renewals of the lease. */
const READS_PER_LEASE = 100;

/** Judges the requests of one sale page by page, and reads differences again one by one. */
export class RequestJudge {
  readonly #saleId: string;
  readonly #sides: BothSides;
  readonly #limits: CompareLimits;
  readonly #notes: SaleNotes;
  readonly #keepLease: () => Promise<void>;
  readonly #reads: Partial<Record<RequestKind, number>> = {};
  #readsInAll = 0;
  #overdue = { requests: 0, oldestMs: 0 };

  constructor(
    saleId: string,
    sides: BothSides,
    limits: CompareLimits,
    notes: SaleNotes,
    keepLease: () => Promise<void>,
  ) {
    this.#saleId = saleId;
    this.#sides = sides;
    this.#limits = limits;
    this.#notes = notes;
    this.#keepLease = keepLease;
  }

  async readRequests(ref: BucketRef, page: readonly (readonly [string, RequestEntry])[]): Promise<void> {
    this.#notes.seen.requests += page.length;
    const rows = await this.#sides.repository.rowsOf(
      ref.saleId,
      page.map(([key]) => splitPurchaseKey(key)),
    );
    const byKey = new Map(rows.map((row) => [purchaseKey(row), row]));
    const candidates = page.map(([key, entry]) => candidateOf(key, entry, byKey.get(key)));
    await this.#judge(ref, candidates);
  }

  /** Compares rows that Redis does not know. All other rows were compared when the page of Redis was read. */
  async readRows(ref: BucketRef, rows: readonly AgedOrder[]): Promise<void> {
    const entries = await this.#sides.store.entriesOf(ref, rows.map(purchaseKey));
    const unknown = rows.filter((_, index) => (entries[index] ?? null) === null);
    await this.#judge(
      ref,
      unknown.map((row) => candidateOf(purchaseKey(row), null, row)),
    );
  }

  conclude(): void {
    if (this.#overdue.requests > 0) {
      this.#notes.found({ kind: 'overdue', saleId: this.#saleId, ...this.#overdue });
    }
  }

  async #judge(ref: BucketRef, candidates: readonly (Candidate | null)[]): Promise<void> {
    const differing = candidates.filter((one) => one !== null);
    if (differing.length === 0) return;
    for (const candidate of await this.#sift(ref, differing)) {
      const reads = this.#reads[candidate.kind] ?? 0;
      if (reads >= this.#limits.readsMax) {
        this.#notes.seen.unseen++;
        continue;
      }
      this.#reads[candidate.kind] = reads + 1;
      if (++this.#readsInAll % READS_PER_LEASE === 0) await this.#keepLease();
      await this.#readAgain(ref, candidate.key);
    }
  }

  /**
   * Removes young, re-driven and parked requests. Reads the batches of a page together, because thousands are under way
   * in a rush. Reads dead letters after `pending`, because a batch is parked before it leaves `pending`.
   */
  async #sift(ref: BucketRef, candidates: readonly Candidate[]): Promise<Candidate[]> {
    const batchIds = [...new Set(candidates.map(batchOf).filter((batchId) => batchId !== ''))];
    const pending = await this.#sides.store.pendingAmong(ref, batchIds);
    const parked = await this.#sides.repository.parkedBatches(batchIds.filter((batchId) => !pending.has(batchId)));
    return candidates.filter((candidate) => {
      const batchId = batchOf(candidate);
      if (batchId === '') return !this.#isYoung(candidate.row);
      return !this.#isServed(pending.get(batchId)) && !this.#isParked(parked.has(batchId));
    });
  }

  /**
   * Reads one candidate again: first its batch and dead letter, then entry, row and entry. Batch and dead letter
   * disappear only after the rows are committed, so a row that is missing then is really missing.
   */
  async #readAgain(ref: BucketRef, key: string): Promise<void> {
    const { store, repository } = this.#sides;
    const read = async (): Promise<RequestEntry | null> => (await store.entriesOf(ref, [key]))[0] ?? null;
    const early = await read();
    const batchId = (early && batchOfEntry(early)) ?? '';
    const batch = batchId === '' ? null : await store.batch(ref, batchId);
    const parked = batchId !== '' && (await repository.parkedBatches([batchId])).has(batchId);
    const entry = await read();
    const [row] = await repository.rowsOf(ref.saleId, [splitPurchaseKey(key)]);
    const kind = compareRequest(entry, row);
    if (kind === 'match' || kind !== compareRequest(await read(), row)) return;
    if (kind === 'leak' || (kind === 'order_lost' && batchId !== '')) {
      const pendingMs = batch?.pendingMs ?? null;
      const hasBody = typeof batch?.body === 'string';
      const served = pendingMs === null ? undefined : { pendingMs, hasBody };
      if (this.#isServed(served) || this.#isParked(parked)) return;
    } else if (this.#isYoung(row)) return;
    this.#notes.found({
      kind,
      saleId: this.#saleId,
      ...splitPurchaseKey(key),
      batchId: (entry && batchOfEntry(entry)) ?? row?.batchId ?? null,
      quantity: entry?.quantity ?? row?.quantity ?? 0,
    });
  }

  #isYoung(row: AgedOrder | undefined): boolean {
    const young = row !== undefined && row.ageMs < this.#limits.safeAgeMs;
    if (young) this.#notes.seen.young++;
    return young;
  }

  /** A batch in the re-drive is published again until a worker records it, no matter how long that takes. */
  #isServed(pending: PendingAge | undefined): boolean {
    if (pending === undefined) return false;
    const { pendingMs, hasBody } = pending;
    const { seen } = this.#notes;
    if (pendingMs < this.#limits.safeAgeMs) seen.young++;
    else if (!hasBody) return false;
    else seen.waiting++;
    if (hasBody && pendingMs >= this.#limits.waitingMaxMs) {
      const { requests, oldestMs } = this.#overdue;
      this.#overdue = { requests: requests + 1, oldestMs: Math.max(oldestMs, pendingMs) };
    }
    return true;
  }

  #isParked(parked: boolean): boolean {
    if (parked) this.#notes.seen.parked++;
    return parked;
  }
}

function candidateOf(key: string, entry: RequestEntry | null, row: AgedOrder | undefined): Candidate | null {
  const kind = compareRequest(entry, row);
  return kind === 'match' ? null : { key, kind, entry, row };
}

/** The batch that decides about a request without a row. Empty if there is a row, which then decides. */
const batchOf = ({ entry, row }: Candidate): string =>
  row === undefined && entry !== null ? (batchOfEntry(entry) ?? '') : '';
