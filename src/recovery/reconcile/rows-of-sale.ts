import { isLive } from '../../core/order.js';
import type { Sale } from '../../core/sale.js';
import type { AgedOrder, ReconcileRepository } from '../../core/ports/reconcile-repository.js';
import type { ReconcileStore } from '../../core/ports/reconcile-store.js';
import type { BucketRef } from '../../core/ports/stock-store.js';

/** Retries, the re-drive and the broker are through with a sale by then; only a replay by hand writes later. */
const LATE_ROWS_MS = 24 * 3_600_000;

/** Units of live orders. */
export const liveUnitsOf = (rows: readonly AgedOrder[]): number =>
  rows.reduce((sum, { state, quantity }) => sum + (isLive(state) ? quantity : 0), 0);

/**
 * Every row of a sale, in chunks. All later sales write into the same table, so for a closed one the walk ends a day
 * after its window; it goes on only if the live orders found until then are not those that the sale counts.
 * @throws OperationalError mysql
 */
export async function* rowsOfSale(
  sale: Sale,
  repository: Pick<ReconcileRepository, 'agedOrders'>,
): AsyncGenerator<readonly AgedOrder[]> {
  if (sale.state !== 'closed') return yield* repository.agedOrders(sale);
  const endMs = sale.closesAtMs + LATE_ROWS_MS;
  let liveUnits = 0;
  for await (const rows of repository.agedOrders(sale, { toMs: endMs })) {
    liveUnits += liveUnitsOf(rows);
    yield rows;
  }
  if (liveUnits !== sale.sold) yield* repository.agedOrders(sale, { fromMs: endMs });
}

/** Markers of a closed sale whose rows have not moved for so long that nobody can ask for their batch any more. */
export async function staleMarkers(
  sale: Sale,
  ref: BucketRef,
  rows: readonly AgedOrder[],
  { store }: { readonly store: Pick<ReconcileStore, 'settledMarkers'> },
  { markerAgeMs }: { readonly markerAgeMs: number },
): Promise<string[]> {
  if (sale.state !== 'closed') return [];
  const old = rows.filter(({ ageMs }) => ageMs >= markerAgeMs).map(({ batchId }) => batchId);
  return store.settledMarkers(ref, [...new Set(old)]);
}
