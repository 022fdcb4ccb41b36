import { type Sale } from '../../core/sale.js';
import { homeBucket, homesEver, type BucketRef } from '../../core/bucket.js';
import type { AgedOrder, ReconcileRepository } from '../../core/ports/reconcile-repository.js';
import type { Clock } from '../../core/ports/clock.js';
import type { StoredRequest, ReconcileStore } from '../../core/ports/reconcile-store.js';
import type { RepairStore } from '../../core/ports/repair-stores.js';
import { rowsOfSale } from '../rows-of-sale.js';
import { isWhole, measureDrift, type SaleUnits, staleMarkers } from './count-units.js';
import { RequestJudge, type JudgeLimits } from './judge-requests.js';
import { judgeUnits, RowUnits } from './judge-units.js';
import { SaleNotes, type SaleReport } from './sale-report.js';

export interface ComparePorts {
  readonly store: ReconcileStore & Pick<RepairStore, 'statusOf'>;
  readonly repository: ReconcileRepository;
  readonly clock: Clock;
}

export interface CompareLimits extends JudgeLimits {
  /** Age after which no check-back can ask for a marker of a closed sale, ms. */
  readonly markerAgeMs: number;
  /** Age after which an outbox row may be stuck, ms. */
  readonly outboxAgeMs: number;
}

/** Attempts after which a row will not succeed by itself. The last attempts are 30 s apart. */
const OUTBOX_ATTEMPTS_MIN = 20;
const STUCK_MAX = 100;

/**
 * Compares Redis and MySQL for one sale, which may be selling. Reads page by page, and reads each difference once more
 * on its own before it becomes a finding. Changes nothing.
 * @param onPage called between pages, to keep a lease
 * @throws OperationalError, and any error that `onPage` throws
 */
export async function compareSale(
  sale: Sale,
  ports: ComparePorts,
  limits: CompareLimits,
  onPage: () => Promise<void> = () => Promise.resolve(),
): Promise<SaleReport> {
  const { saleId } = sale;
  const { repository } = ports;
  const notes = new SaleNotes();
  const judge = new RequestJudge(saleId, ports, limits, notes, onPage);

  const units = (await isWhole(sale, ports)) ? await measureDrift(sale, ports, limits) : null;
  // Redis does not have the whole sale, so its data cannot be judged: a half-loaded sale would give thousands of
  // findings. A closed sale is rebuilt on request, a retired sale never.
  if (units === null && sale.state === 'closed') notes.isWhole = sale.retiredAtMs !== null;
  else if (units === null && sale.state !== 'draft') notes.found({ kind: 'not_loaded', saleId });
  let heldUnits = 0;
  for (let bucket = 0; units !== null && bucket < sale.buckets; bucket++) {
    for await (const page of ports.store.requests({ saleId, bucket })) {
      heldUnits += heldIn(page);
      await judge.readRequests({ saleId, bucket }, page);
      await onPage();
    }
  }

  const rows = new RowUnits();
  let markers = 0;
  for await (const chunk of rowsOfSale(sale, ports)) {
    notes.seen.rows += chunk.length;
    rows.add(chunk);
    for (const [ref, rowsOfBucket] of units === null ? [] : byBucket(sale, chunk, (row) => [homeOf(sale, row)])) {
      await judge.readRows(ref, rowsOfBucket);
    }
    for (const [ref, rowsOfBucket] of units === null ? [] : byBucket(sale, chunk, (row) => markersOf(sale, row))) {
      markers += (await staleMarkers(sale, ref, rowsOfBucket, ports, limits)).length;
    }
    await onPage();
  }
  judge.conclude();
  if (markers > 0) notes.found({ kind: 'stale_marker', saleId, markers });

  const stuck = { olderThanMs: limits.outboxAgeMs, attemptsMin: OUTBOX_ATTEMPTS_MIN };
  for (const row of await repository.stuckRows(saleId, stuck, STUCK_MAX)) {
    notes.found({ kind: 'stuck_outbox', saleId, ...row });
  }
  const after = (await repository.findSale(saleId)) ?? sale;
  await judgeUnits({ before: sale, after, units, heldUnits, rows }, ports, limits, notes, onPage);
  const now = (await repository.findSale(saleId)) ?? after;
  // The sale was resharded during the comparison: half of the data read is in other buckets by now.
  if (now.buckets !== sale.buckets) return compareSale(now, ports, limits, onPage);
  return reportOf(notes, after, units, rows);
}

const heldIn = (page: readonly StoredRequest[]): number =>
  page.reduce((sum, [, { state, quantity }]) => sum + (state === 'released' ? 0 : quantity), 0);

function reportOf(
  notes: SaleNotes,
  { saleId, stock, sold }: Sale,
  units: SaleUnits | null,
  { guarded }: RowUnits,
): SaleReport {
  const none = { unitsLeft: 0, unitsOfBuyers: 0, difference: 0, pending: 0, moving: false };
  const { unitsLeft, unitsOfBuyers, difference, pending: pendingBatches, moving } = units ?? none;
  return notes.report(saleId, {
    stock,
    sold,
    unitsLeft,
    unitsOfBuyers,
    difference,
    pendingBatches,
    guarded,
    moving: moving ? 1 : 0,
  });
}

const homeOf = ({ buckets }: Sale, { userId }: AgedOrder): number => homeBucket(userId, buckets);
/**
 * Finds the buckets that may have the marker of a batch: it stays in the bucket that was the buyer's home when the
 * batch was formed.
 */
const markersOf = ({ buckets }: Sale, { userId }: AgedOrder): number[] => homesEver(userId, buckets);

function byBucket(
  { saleId }: Sale,
  rows: readonly AgedOrder[],
  bucketsOf: (row: AgedOrder) => readonly number[],
): [BucketRef, AgedOrder[]][] {
  const found = new Map<number, AgedOrder[]>();
  for (const row of rows) {
    for (const bucket of bucketsOf(row)) {
      const ofBucket = found.get(bucket);
      if (ofBucket === undefined) found.set(bucket, [row]);
      else ofBucket.push(row);
    }
  }
  return [...found].map(([bucket, ofBucket]) => [{ saleId, bucket }, ofBucket]);
}
