import type { Sale } from '../../core/sale.js';
import type { AgedOrder } from '../../core/ports/reconcile-repository.js';
import { liveUnitsOf, rowsOfSale } from '../../recovery/rows-of-sale.js';
import type { BothSides } from '../../recovery/stale-markers.js';
import { buyersTooMany, measureDrift, type SaleUnits, stoodStill } from './count-units.js';
import type { SaleNotes } from './sale-report.js';

/** A sale, with its units left and held before its requests were read, and the counts of that reading. */
export interface CountedSale {
  readonly before: Sale;
  readonly after: Sale;
  /** Null if the sale is not loaded. */
  readonly units: SaleUnits | null;
  /** Units of held and ordered requests. */
  readonly heldUnits: number;
  readonly rows: RowUnits;
}

/** Refusals of the MySQL guard that are older than this count as a finding only together with another one. */
const GUARD_RECENT_MS = 24 * 3_600_000;

export class RowUnits {
  live = 0;
  guarded = 0;
  guardedLately = 0;

  add(rows: readonly AgedOrder[]): void {
    this.live += liveUnitsOf(rows);
    for (const { reason, quantity, ageMs } of rows) {
      if (reason !== 'oversold_guard') continue;
      this.guarded += quantity;
      if (ageMs < GUARD_RECENT_MS) this.guardedLately += quantity;
    }
  }
}

/** Judges the counts of a sale: first `sold` against its rows and its stock, then the stock and the buyers in Redis. */
export async function judgeUnits(
  counted: CountedSale,
  sides: BothSides,
  limits: { readonly safeAgeMs: number },
  notes: SaleNotes,
  onPage: () => Promise<void>,
): Promise<void> {
  const { after, units, rows } = counted;
  const { saleId } = after;
  const apart = [
    await judgeSold(counted, sides, notes, onPage),
    await judgeStock(counted, sides, limits, notes, onPage),
  ];
  const disagrees = apart.includes(true) || (units?.difference ?? 0) !== 0;
  const refused = disagrees ? rows.guarded : rows.guardedLately;
  if (refused > 0) {
    const why = `MySQL refused ${refused} units that Redis had given out`;
    notes.found({ kind: 'oversell', saleId, units: refused, why });
  }
}

/** @returns whether there is a finding */
async function judgeSold(
  { before, after, rows }: CountedSale,
  sides: BothSides,
  notes: SaleNotes,
  onPage: () => Promise<void>,
): Promise<boolean> {
  const { saleId, stock, sold } = after;
  if (sold > stock) {
    notes.found({ kind: 'oversell', saleId, units: sold - stock, why: `sold ${sold} of ${stock}` });
    return true;
  }
  // Rows were written during the read, and only an unchanged `sold` can be compared with them.
  if (before.sold !== sold || rows.live === sold) return false;
  if (!(await isCountedAgain(after, rows.live, sides, onPage))) return false;
  const why = `live orders hold ${rows.live} units`;
  if (rows.live > stock) notes.found({ kind: 'oversell', saleId, units: rows.live - stock, why: `${why} of ${stock}` });
  else
    notes.found({
      kind: 'miscount',
      saleId,
      units: sold - rows.live,
      why: `the count of sold units is ${sold}, but ${why}`,
    });
  return true;
}

/** Counts all rows again, because one extra order and one missing order would leave `sold` unchanged. */
async function isCountedAgain(
  sale: Sale,
  liveUnits: number,
  sides: BothSides,
  onPage: () => Promise<void>,
): Promise<boolean> {
  let again = 0;
  for await (const chunk of rowsOfSale(sale, sides)) {
    again += liveUnitsOf(chunk);
    await onPage();
  }
  return again === liveUnits && (await sides.repository.findSale(sale.saleId))?.sold === sale.sold;
}

/** @returns whether there is a finding */
async function judgeStock(
  { after, units, heldUnits }: CountedSale,
  sides: BothSides,
  limits: { readonly safeAgeMs: number },
  notes: SaleNotes,
  onPage: () => Promise<void>,
): Promise<boolean> {
  const { saleId } = after;
  if (units === null) return false;
  if (units.unitsOfBuyers !== heldUnits) {
    const now = await measureDrift(after, sides, limits);
    const tooMany = now !== null && stoodStill(units, now) ? await buyersTooMany(after, sides, limits, onPage) : null;
    if (tooMany !== null && tooMany !== 0) {
      const holding = units.unitsOfBuyers - tooMany;
      const why = `the buyers in Redis count ${units.unitsOfBuyers} units, their requests hold ${holding}`;
      notes.found({ kind: 'miscount', saleId, units: tooMany, why });
      return true; // the correct stock cannot be computed
    }
  }
  if (units.moving || units.difference === 0) return false;
  notes.found({ kind: 'drift', saleId, units: units.difference });
  return true;
}
