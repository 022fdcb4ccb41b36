import type { Batch } from '../core/batch.js';
import { groupBy } from '../core/group-by.js';
import { isLive, type FailureReason, type Order } from '../core/order.js';
import { type Purchase, requestName } from '../core/purchase.js';
import type { OrderRepository, SaleTerms } from '../core/ports/order-repository.js';
import type { Release, LiveOrder } from '../core/ports/batch-store.js';

/** What a look-up found in MySQL, and what Redis answered for older batches. */
export interface Known {
  /** By request name: the row that a purchase has already. */
  readonly rows: ReadonlyMap<string, Order>;
  /** By buyer name: buyers with a live order in a sale with limit 1. */
  readonly liveBuyers: ReadonlySet<string>;
  /** By request name: purchases of an older batch for which Redis has no units any more. Absent: none. */
  readonly lost?: ReadonlySet<string>;
  /** By request name: purchases of an older batch whose units another batch holds. Absent: none. */
  readonly elsewhere?: ReadonlySet<string>;
}

/** A row to be inserted; its order id is minted for each attempt. */
interface DraftRow {
  readonly batch: Batch;
  readonly purchase: Purchase;
  readonly failure: FailureReason | null;
}

export interface Draft {
  readonly rows: readonly DraftRow[];
  /** Live rows that were there before; a purchase keeps the row it has, whatever batch wrote it. */
  readonly found: ReadonlyMap<Batch, readonly LiveOrder[]>;
  /** Requests whose row has ended, and that the batch may hold units for all the same. Safe to repeat. */
  readonly releases: readonly Release[];
  /** Batches with a purchase that another one holds, and has not recorded yet: they come again. */
  readonly waiting: ReadonlySet<Batch>;
}

const buyerName = (saleId: string, userId: string): string => `${saleId}/${userId}`;

/** Formed before the sale was rebuilt: its deduct may be lost. */
export const isOfOlderEpoch = ({ saleId, epoch }: Batch, terms: ReadonlyMap<string, SaleTerms>): boolean =>
  epoch < (terms.get(saleId)?.epoch ?? 0);

/**
 * Decides what becomes of every purchase; pure. A purchase without a row is new, or stopped by the live order of its
 * buyer (`limit_reached`: the row says so and its units go back), or its units are lost. One with a live row keeps it,
 * whatever batch wrote it. One whose row has ended is done if the row is of its own batch, which promised the release
 * with it; else what this batch holds is released. So it is for an older batch in any case: it may have taken units
 * again after that release was done. One that another batch holds waits for its row. Every purchase ends in a row
 * (protocol rule 7).
 * @param batches no request twice
 * @param known null before any look-up: then every purchase is assumed to be new. Nearly all are, and the unique keys
 *   show when one is not, so the usual transaction needs no look-up
 */
export function draftRows(
  batches: readonly Batch[],
  terms: ReadonlyMap<string, SaleTerms>,
  known: Known | null,
): Draft {
  const rows: DraftRow[] = [];
  if (known === null) {
    for (const batch of batches) for (const purchase of batch.purchases) rows.push({ batch, purchase, failure: null });
    return { rows, found: new Map(), releases: [], waiting: new Set() };
  }
  const releases: Release[] = [];
  const found = new Map<Batch, LiveOrder[]>();
  const waiting = new Set<Batch>();
  const winners = new Set<string>();
  for (const batch of batches) {
    const onePerBuyer = terms.get(batch.saleId)?.limitPerBuyer === 1;
    const isOlder = isOfOlderEpoch(batch, terms);
    const live: LiveOrder[] = [];
    for (const purchase of batch.purchases) {
      const name = requestName(batch.saleId, purchase);
      const row = known.rows.get(name);
      if (row === undefined && known.lost?.has(name)) {
        rows.push({ batch, purchase, failure: 'units_lost' });
      } else if (row === undefined && known.elsewhere?.has(name)) {
        waiting.add(batch);
      } else if (row === undefined) {
        const failure = onePerBuyer && !takesPlace(batch.saleId, purchase.userId, known, winners);
        rows.push({ batch, purchase, failure: failure ? 'limit_reached' : null });
      } else if (isLive(row.state)) {
        live.push({ userId: row.userId, requestId: row.requestId, orderId: row.orderId, state: row.state });
      } else if (isOlder || row.batchId !== batch.batchId) {
        releases.push(releaseOf(batch, row, isOlder));
      }
    }
    if (live.length > 0) found.set(batch, live);
  }
  return { rows, found, releases, waiting };
}

/** False when the buyer has a live order, or gets one from an earlier purchase of the same transaction. */
function takesPlace(saleId: string, userId: string, known: Known, winners: Set<string>): boolean {
  const buyer = buyerName(saleId, userId);
  if (known.liveBuyers.has(buyer) || winners.has(buyer)) return false;
  winners.add(buyer);
  return true;
}

/**
 * Where the guard refused the row, its unit never existed. But an older batch has taken its own in the present epoch,
 * from a stock that was counted anew: where the row is of another batch, that unit goes back.
 */
function releaseOf(batch: Batch, row: Order, isOlder: boolean): Release {
  const { saleId, bucket, batchId } = batch;
  const { userId, requestId, orderId, reason } = row;
  const withUnits = reason !== 'oversold_guard' || (isOlder && row.batchId !== batchId);
  return { saleId, bucket, userId, requestId, orderId, batchId, withUnits };
}

/**
 * Reads which of these purchases have a row, and which buyers have a live order where the limit is one.
 * @throws OperationalError mysql
 */
export async function lookUp(
  batches: readonly Batch[],
  terms: ReadonlyMap<string, SaleTerms>,
  repository: Pick<OrderRepository, 'findByPurchases' | 'liveBuyers'>,
): Promise<Known> {
  const rows = await lookUpRows(batches, repository);
  const liveBuyers = new Set<string>();
  for (const [saleId, purchases] of purchasesBySale(batches)) {
    if (terms.get(saleId)?.limitPerBuyer !== 1) continue;
    const users = [...new Set(purchases.map(({ userId }) => userId))];
    for (const userId of await repository.liveBuyers(saleId, users)) liveBuyers.add(buyerName(saleId, userId));
  }
  return { rows, liveBuyers };
}

/**
 * Reads the rows of these purchases, by request name.
 * @throws OperationalError mysql
 */
export async function lookUpRows(
  batches: readonly Batch[],
  repository: Pick<OrderRepository, 'findByPurchases'>,
): Promise<Map<string, Order>> {
  const rows = new Map<string, Order>();
  for (const [saleId, purchases] of purchasesBySale(batches)) {
    for (const row of await repository.findByPurchases(saleId, purchases)) rows.set(requestName(saleId, row), row);
  }
  return rows;
}

const purchasesBySale = (batches: readonly Batch[]): [saleId: string, Purchase[]][] =>
  [...groupBy(batches, ({ saleId }) => saleId)].map(([saleId, ofSale]) => [
    saleId,
    ofSale.flatMap(({ purchases }) => purchases),
  ]);
