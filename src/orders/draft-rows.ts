import type { Batch } from '../core/batch.js';
import { groupBy } from '../core/group-by.js';
import { isLive, type FailureReason, type Order } from '../core/order.js';
import { type Purchase, requestName } from '../core/purchase.js';
import type { OrderRepository, SaleTerms } from '../core/ports/order-repository.js';
import type { Release, LiveOrder } from '../core/ports/batch-store.js';

/** The rows that a look-up found in MySQL, and the answers of Redis for older batches. */
export interface Known {
  /** The existing row of each purchase, by request name. */
  readonly rows: ReadonlyMap<string, Order>;
  /** Buyers with a live order in a sale with limit 1, by buyer name. */
  readonly liveBuyers: ReadonlySet<string>;
  /** Request names of an older batch's purchases for which Redis no longer has units. */
  readonly lost?: ReadonlySet<string>;
  /** Request names of an older batch's purchases whose units another batch holds. */
  readonly elsewhere?: ReadonlySet<string>;
}

/** A row to insert. Its order id is minted for each attempt. */
interface DraftRow {
  readonly batch: Batch;
  readonly purchase: Purchase;
  readonly failure: FailureReason | null;
}

export interface Draft {
  readonly rows: readonly DraftRow[];
  /** Live rows that already existed, written by any batch. */
  readonly found: ReadonlyMap<Batch, readonly LiveOrder[]>;
  /** Requests whose order has ended, although the batch may still hold units. A release is safe to repeat. */
  readonly releases: readonly Release[];
  /** Batches with a purchase that another batch holds and has not recorded yet. They are redelivered. */
  readonly waiting: ReadonlySet<Batch>;
}

const buyerName = (saleId: string, userId: string): string => `${saleId}/${userId}`;

/** Whether the batch is older than the last rebuild of its sale, so its deduct may be lost. */
export const isOfOlderEpoch = ({ saleId, epoch }: Batch, terms: ReadonlyMap<string, SaleTerms>): boolean =>
  epoch < (terms.get(saleId)?.epoch ?? 0);

/**
 * Decides the row of every purchase, without side effects. Every purchase ends in a row (protocol rule 7).
 * - No row: the purchase is new, or its buyer has a live order (the row says `limit_reached`, and the units go back),
 *   or its units are lost.
 * - A live row: the purchase keeps it, no matter which batch wrote it.
 * - An ended row of its own batch: nothing is left to do, because the release was stored with that row.
 * - An ended row of another batch: the units that this batch holds are released. A batch of an older epoch always
 *   releases, because it may have taken units again after that row ended.
 * - Held by another batch: the purchase waits for that batch's row.
 *
 * @param batches contain each request once
 * @param known null before any look-up: every purchase then counts as new. Nearly all are, and the unique keys reveal
 * the others, so the usual transaction needs no look-up.
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

/** False if the buyer has a live order, or gets one from an earlier purchase of this transaction. */
function takesPlace(saleId: string, userId: string, known: Known, winners: Set<string>): boolean {
  const buyer = buyerName(saleId, userId);
  if (known.liveBuyers.has(buyer) || winners.has(buyer)) return false;
  winners.add(buyer);
  return true;
}

/**
 * If the guard refused the row, the purchase never had a unit. A batch of an older epoch has taken its unit in the
 * current epoch, from stock counted anew; if another batch wrote the row, that unit goes back.
 */
function releaseOf(batch: Batch, row: Order, isOlder: boolean): Release {
  const { saleId, bucket, batchId } = batch;
  const { userId, requestId, orderId, reason } = row;
  const withUnits = reason !== 'oversold_guard' || (isOlder && row.batchId !== batchId);
  return { saleId, bucket, userId, requestId, orderId, batchId, withUnits };
}

/** Reads the rows, and in sales with limit one, the buyers with a live order. @throws OperationalError mysql */
export async function lookUp(
  batches: readonly Batch[],
  terms: ReadonlyMap<string, SaleTerms>,
  repository: OrderRepository,
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
 * @returns rows by request name
 * @throws OperationalError mysql
 */
export async function lookUpRows(batches: readonly Batch[], repository: OrderRepository): Promise<Map<string, Order>> {
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
