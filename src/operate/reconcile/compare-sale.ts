import { type Sale } from '../../core/sale.js';
import { homeBucket } from '../../core/bucket.js';
import type { StoredRequest } from '../../core/ports/reconcile-store.js';
import { repairNeedIn } from '../../recovery/repair/sale-status.js';
import { rowsOfSale } from '../../recovery/rows-of-sale.js';
import { type BothSides, byBucket, staleMarkers } from '../../recovery/stale-markers.js';
import { measureDrift, type SaleUnits } from './count-units.js';
import { type CompareLimits, RequestJudge } from './judge-requests.js';
import { judgeUnits, RowUnits } from './judge-units.js';
import { SaleNotes, type SaleReport } from './sale-report.js';

/** After this many attempts, a row will not succeed by itself. The last attempts are 30 s apart. */
const OUTBOX_ATTEMPTS_MIN = 20;
const STUCK_MAX = 100;

/** Reads each difference again before it is a finding. @param onPage keeps the lease. @throws OperationalError */
export async function compareSale(
  sale: Sale,
  sides: BothSides,
  limits: CompareLimits,
  onPage: () => Promise<void> = () => Promise.resolve(),
): Promise<SaleReport> {
  const { saleId } = sale;
  const { store, repository } = sides;
  const notes = new SaleNotes();
  const judge = new RequestJudge(saleId, sides, limits, notes, onPage);

  const units = (await repairNeedIn(sale, sides.repairs)) === null ? await measureDrift(sale, sides, limits) : null;
  // A partly loaded sale would yield thousands of findings. A closed sale is rebuilt on request, a retired sale never.
  if (units === null && sale.state === 'closed') notes.isWhole = sale.retiredAtMs !== null;
  else if (units === null && sale.state !== 'draft') notes.found({ kind: 'not_loaded', saleId });
  let heldUnits = 0;
  for (let bucket = 0; units !== null && bucket < sale.buckets; bucket++) {
    for await (const page of store.requests({ saleId, bucket })) {
      heldUnits += heldIn(page);
      await judge.readRequests({ saleId, bucket }, page);
      await onPage();
    }
  }

  const rows = new RowUnits();
  let markers = 0;
  for await (const chunk of rowsOfSale(sale, sides)) {
    notes.seen.rows += chunk.length;
    rows.add(chunk);
    if (units !== null) {
      for (const [ref, ofBucket] of byBucket(sale, chunk, ({ userId }) => [homeBucket(userId, sale.buckets)])) {
        await judge.readRows(ref, ofBucket);
      }
      for await (const [, stale] of staleMarkers(sale, chunk, store, limits.markerAgeMs)) markers += stale.length;
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
  await judgeUnits({ before: sale, after, units, heldUnits, rows }, sides, limits, notes, onPage);
  const now = (await repository.findSale(saleId)) ?? after;
  // The sale was resharded during the comparison, so half of the data that was read is in other buckets by now.
  if (now.buckets !== sale.buckets) return compareSale(now, sides, limits, onPage);
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
