import { isLive } from '../domain/order.js';
import type { RequestEntry } from '../domain/outcome.js';
import { purchaseKey } from '../domain/purchase.js';
import { homeBucket, type Sale } from '../domain/sale.js';
import type { FindingKind, SaleFinding } from '../domain/sale-finding.js';
import type { AgedOrder, ReconcileBook } from '../ports/reconcile-book.js';
import type { ReconcileLedger } from '../ports/reconcile-ledger.js';
import type { BucketRef } from '../ports/stock-ledger.js';
import { compareRequest, type RequestKind } from './compare-request.js';
import { measureDrift } from './measure-drift.js';

export interface ComparePorts {
  readonly ledger: ReconcileLedger;
  readonly book: ReconcileBook;
}

export interface CompareLimits {
  /** What is younger is not judged: it may be on its way. */
  readonly safeAgeMs: number;
  /** A marker of a closed sale that is older can be asked for by no check-back. */
  readonly markerAgeMs: number;
  /** A promise in the outbox that is older is stuck. */
  readonly outboxAgeMs: number;
}

/** Units unless it says otherwise. */
export interface LiveFigures {
  readonly stock: number;
  readonly sold: number;
  readonly unitsLeft: number;
  readonly unitsOfBuyers: number;
  /** Stock less units left less units of buyers. */
  readonly difference: number;
  /** 1: units moved while they were counted, so the difference was not judged. */
  readonly moving: number;
  /** Requests that Redis let in, and rows that MySQL has. */
  readonly requests: number;
  readonly rows: number;
  readonly pendingBatches: number;
  /** Requests that differ and were not judged: too young, or their batch is a dead letter. */
  readonly young: number;
  readonly parked: number;
}

export interface SaleReport {
  readonly saleId: string;
  /** Nothing at all was found. */
  readonly match: boolean;
  readonly figures: LiveFigures;
  /** How many of each kind. */
  readonly counts: Readonly<Partial<Record<FindingKind, number>>>;
  /** The first of them, at most `FINDINGS_MAX`. */
  readonly findings: readonly SaleFinding[];
}

/** Findings that are kept; the next run takes those that are left. */
export const FINDINGS_MAX = 1000;
/** A promise was tried so often, 30 s apart at last, that it will not keep itself. */
const OUTBOX_ATTEMPTS_MIN = 20;
const STUCK_MAX = 100;

/**
 * Compares Redis and MySQL for one sale that may be selling. Read page by page; what looks wrong is read once more, one
 * by one, before it is called a finding. Nothing is changed.
 * @param onPage called between pages, to keep a lease
 * @throws OperationalError
 */
export async function compareSale(
  sale: Sale,
  ports: ComparePorts,
  limits: CompareLimits,
  onPage: () => Promise<void> = () => Promise.resolve(),
): Promise<SaleReport> {
  const comparison = new Comparison(sale, ports, limits);
  const units = await measureDrift(sale, ports, limits);
  if (units !== null) {
    for (let bucket = 0; bucket < sale.buckets; bucket++) {
      for await (const page of ports.ledger.requests({ saleId: sale.saleId, bucket })) {
        await comparison.readRequests({ saleId: sale.saleId, bucket }, page);
        await onPage();
      }
    }
  }
  for await (const rows of ports.book.agedOrders(sale)) {
    await comparison.readRows(rows, units !== null);
    await onPage();
  }
  await comparison.readOutbox();
  const after = (await ports.book.findSale(sale.saleId)) ?? sale;
  comparison.judgeUnits(after, units === null || units.moving ? 0 : units.difference);
  return comparison.conclude(
    after,
    units ?? { unitsLeft: 0, unitsOfBuyers: 0, difference: 0, pending: 0, moving: false },
  );
}

type Units = Pick<
  NonNullable<Awaited<ReturnType<typeof measureDrift>>>,
  'unitsLeft' | 'unitsOfBuyers' | 'difference' | 'pending' | 'moving'
>;

class Comparison {
  readonly #sale: Sale;
  readonly #ports: ComparePorts;
  readonly #limits: CompareLimits;
  readonly #findings: SaleFinding[] = [];
  readonly #counts: Partial<Record<FindingKind, number>> = {};
  readonly #seen = { requests: 0, rows: 0, young: 0, parked: 0 };
  #liveUnits = 0;
  #guardedUnits = 0;
  #staleMarkers = 0;

  constructor(sale: Sale, ports: ComparePorts, limits: CompareLimits) {
    this.#sale = sale;
    this.#ports = ports;
    this.#limits = limits;
  }

  /** What Redis knows, against MySQL. */
  async readRequests(ref: BucketRef, page: readonly (readonly [string, RequestEntry])[]): Promise<void> {
    this.#seen.requests += page.length;
    const rows = await this.#ports.book.rowsOf(
      ref.saleId,
      page.map(([key]) => purchaseOf(key)),
    );
    const byKey = new Map(rows.map((row) => [purchaseKey(row), row]));
    for (const [key, entry] of page) {
      if (compareRequest(entry, byKey.get(key)) !== 'match') await this.#lookAgain(ref, key);
    }
  }

  /** What MySQL knows, against Redis; and the markers of batches that are long done. */
  async readRows(rows: readonly AgedOrder[], loaded: boolean): Promise<void> {
    this.#seen.rows += rows.length;
    for (const { state, reason, quantity } of rows) {
      if (isLive(state)) this.#liveUnits += quantity;
      if (reason === 'oversold_guard') this.#guardedUnits += quantity;
    }
    if (!loaded) return;
    for (const [ref, mine] of this.#byBucket(rows)) {
      const entries = await this.#ports.ledger.entriesOf(ref, mine.map(purchaseKey));
      for (const [index, row] of mine.entries()) {
        // What Redis knows was compared when its own page was read.
        const unknown = (entries[index] ?? null) === null;
        if (unknown && compareRequest(null, row) !== 'match') await this.#lookAgain(ref, purchaseKey(row));
      }
      this.#staleMarkers += (await staleMarkers(this.#sale, ref, mine, this.#ports, this.#limits)).length;
    }
  }

  async readOutbox(): Promise<void> {
    const { saleId } = this.#sale;
    const limits = { olderThanMs: this.#limits.outboxAgeMs, attemptsMin: OUTBOX_ATTEMPTS_MIN };
    for (const row of await this.#ports.book.stuckRows(saleId, limits, STUCK_MAX)) {
      this.#found({ kind: 'stuck_outbox', saleId, ...row });
    }
  }

  /** @param drift 0 also when it could not be judged */
  judgeUnits(after: Sale, drift: number): void {
    const { saleId, stock, sold } = after;
    const oversold = (units: number, why: string): void => this.#found({ kind: 'oversell', saleId, units, why });
    if (sold > stock) oversold(sold - stock, `sold ${sold} of ${stock}`);
    // Rows were read while others were written: only a count that stood still may be held against the stock.
    else if (sold === this.#sale.sold && this.#liveUnits > stock) {
      oversold(this.#liveUnits - stock, `live orders have ${this.#liveUnits} units of ${stock}`);
    }
    if (this.#guardedUnits > 0) {
      oversold(this.#guardedUnits, `the last guard refused ${this.#guardedUnits} units that Redis had given`);
    }
    if (drift !== 0) this.#found({ kind: 'drift', saleId, units: drift });
    if (this.#staleMarkers > 0) this.#found({ kind: 'stale_marker', saleId, markers: this.#staleMarkers });
  }

  conclude({ saleId, stock, sold }: Sale, units: Units): SaleReport {
    const { unitsLeft, unitsOfBuyers, difference, pending: pendingBatches, moving } = units;
    return {
      saleId,
      match: this.#findings.length === 0,
      figures: {
        ...{ stock, sold, unitsLeft, unitsOfBuyers, difference, pendingBatches },
        ...{ moving: moving ? 1 : 0, ...this.#seen },
      },
      counts: this.#counts,
      findings: this.#findings,
    };
  }

  /**
   * A candidate, read alone: entry, row, entry again. Who is on his way is not judged. The batch and its dead letter are
   * read first: both are left behind only after its rows are committed, so a row that is not seen then is not there.
   */
  async #lookAgain(ref: BucketRef, key: string): Promise<void> {
    const { ledger, book } = this.#ports;
    const read = async (): Promise<RequestEntry | null> => (await ledger.entriesOf(ref, [key]))[0] ?? null;
    const early = await read();
    const batchId = early?.state === 'held' ? early.batchId : '';
    const { pendingMs } = batchId === '' ? { pendingMs: null } : await ledger.batch(ref, batchId);
    const parked = batchId !== '' && (await book.parkedBatches([batchId])).has(batchId);
    const entry = await read();
    const [row] = await book.rowsOf(ref.saleId, [purchaseOf(key)]);
    const kind = compareRequest(entry, row);
    if (kind === 'match' || kind !== compareRequest(await read(), row)) return;
    const finding = this.#requestFinding(kind, key, entry, row);
    if (kind === 'leak') {
      if (pendingMs !== null && pendingMs < this.#limits.safeAgeMs) this.#seen.young++;
      else if (parked) this.#seen.parked++;
      else this.#found(finding);
    } else if (row !== undefined && row.ageMs < this.#limits.safeAgeMs) this.#seen.young++;
    else this.#found(finding);
  }

  #requestFinding(kind: RequestKind, key: string, entry: RequestEntry | null, row: AgedOrder | undefined) {
    return {
      ...{ kind, saleId: this.#sale.saleId, ...purchaseOf(key) },
      batchId: entry?.state === 'held' ? entry.batchId : (row?.batchId ?? null),
      quantity: entry?.quantity ?? row?.quantity ?? 0,
    };
  }

  #found(finding: SaleFinding): void {
    this.#counts[finding.kind] = (this.#counts[finding.kind] ?? 0) + 1;
    if (this.#findings.length < FINDINGS_MAX) this.#findings.push(finding);
  }

  #byBucket(rows: readonly AgedOrder[]): Iterable<[BucketRef, AgedOrder[]]> {
    const { saleId, buckets } = this.#sale;
    const byBucket = new Map<number, AgedOrder[]>();
    for (const row of rows) {
      const bucket = homeBucket(row.userId, buckets);
      byBucket.set(bucket, [...(byBucket.get(bucket) ?? []), row]);
    }
    return [...byBucket].map(([bucket, mine]) => [{ saleId, bucket }, mine]);
  }
}

/** Markers of a closed sale whose rows have not moved for so long that nobody can ask for their batch any more. */
export async function staleMarkers(
  sale: Sale,
  ref: BucketRef,
  rows: readonly AgedOrder[],
  { ledger }: { readonly ledger: Pick<ReconcileLedger, 'settledMarkers'> },
  { markerAgeMs }: Pick<CompareLimits, 'markerAgeMs'>,
): Promise<string[]> {
  if (sale.state !== 'closed') return [];
  const old = rows.filter(({ ageMs }) => ageMs >= markerAgeMs).map(({ batchId }) => batchId);
  return ledger.settledMarkers(ref, [...new Set(old)]);
}

/** Neither id can hold a slash. */
function purchaseOf(key: string): { readonly userId: string; readonly requestId: string } {
  const at = key.indexOf('/');
  return { userId: key.slice(0, at), requestId: key.slice(at + 1) };
}
