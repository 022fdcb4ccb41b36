import { assert, OperationalError } from '../core/errors.js';
import { groupBy } from '../core/group-by.js';
import { compareIds } from '../core/ids.js';
import { statesBefore } from '../core/order.js';
import { homeBucket } from '../core/bucket.js';
import type { MetadataTexts, OrdersMoved } from '../core/ports/outbox.js';
import type { Release } from '../core/ports/batch-store.js';
import { execute, knex, now, select } from './knex.js';
import type { Transaction } from './pool.js';
import type { OrderRow, OutboxTableRow } from './tables.js';

/** Columns that a move needs of a locked order. */
export const LOCKED_COLUMNS = [
  'id',
  'sale_id',
  'user_id',
  'request_id',
  'quantity',
  'amount_cents',
  'state',
] as const satisfies (keyof OrderRow)[];
/** Metadata as JSON, for the events that follow. The statement locks no row of that table. */
export const LOCKED_METADATA = knex.raw<string>(
  '(SELECT order_metadata.metadata FROM order_metadata WHERE order_metadata.order_id = orders.id) AS metadata',
);
export type LockedOrder = Pick<OrderRow, (typeof LOCKED_COLUMNS)[number]> & { readonly metadata: string | null };

/** The `sales` row of orders that should end is missing, or counts fewer units than they have: I1 is broken there. */
export class SaleOutOfStep extends OperationalError {
  readonly saleId: string;

  constructor(saleId: string) {
    super('mysql', `sale ${saleId} counts fewer units sold than its orders have`, { retryable: false });
    this.name = 'SaleOutOfStep';
    this.saleId = saleId;
  }
}

/**
 * Builds the condition with ids as numbers, so that every version compares them as integers. A list of texts may
 * compare otherwise.
 */
export function idIn(ids: readonly string[], column: 'id' | 'order_id' = 'id'): string {
  assert(
    ids.every((id) => /^[0-9]{1,20}$/.test(id)),
    'an id is a decimal number',
  );
  return `${column} IN (${ids.join(',')})`;
}

/**
 * Moves orders and writes the results: the outbox, then `sales.sold`. The `sales` rows come last and by id, as in the
 * writer, so that the hot row is held for one round trip and the commit only.
 * @param orders at least one, all locked by `tx` and in a state that may move
 * @throws SaleOutOfStep, MysqlError
 */
export async function moveOrders(
  tx: Transaction,
  orders: readonly LockedOrder[],
  move: OrdersMoved['move'],
): Promise<void> {
  const locked = knex('orders').whereRaw(idIn(orders.map(({ id }) => id)));
  const changes = move === 'paid' ? { state: move, paid_at: now() } : { state: move };
  const { affectedRows } = await execute(tx, locked.whereIn('state', statesBefore(move)).update(changes));
  assert(affectedRows === orders.length, `${affectedRows} of ${orders.length} locked orders moved to ${move}`);

  const sales = groupBySale(orders);
  await insertOutbox(tx, sales, move, move === 'paid' ? null : await bucketsOf(tx, [...sales.keys()]));
  if (move === 'paid') return; // paid units stay sold
  for (const [saleId, ofSale] of sales) {
    const units = ofSale.reduce((sum, { quantity }) => sum + quantity, 0);
    const enough = knex('sales').where({ id: saleId }).where('sold', '>=', units);
    const lowered = await execute(tx, enough.update({ sold: knex.raw('sold - ?', [units]) }));
    if (lowered.affectedRows !== 1) throw new SaleOutOfStep(saleId);
  }
}

/** Groups orders by sale, in id order. */
function groupBySale(orders: readonly LockedOrder[]): Map<string, LockedOrder[]> {
  const inOrder = [...orders].sort((a, b) => compareIds(a.sale_id, b.sale_id));
  return groupBy(inOrder, ({ sale_id: saleId }) => saleId);
}

/** Reads the number of buckets per sale, without a lock. */
async function bucketsOf(tx: Transaction, saleIds: readonly string[]): Promise<Map<string, number>> {
  const rows = await select(tx, knex('sales').select('id', 'buckets').whereIn('id', saleIds));
  return new Map(rows.map(({ id, buckets }) => [id, buckets]));
}

/** @param buckets null if no unit goes back */
async function insertOutbox(
  tx: Transaction,
  sales: ReadonlyMap<string, readonly LockedOrder[]>,
  move: OrdersMoved['move'],
  buckets: ReadonlyMap<string, number> | null,
): Promise<void> {
  const rows: Pick<OutboxTableRow, 'kind' | 'key' | 'payload'>[] = [];
  for (const [saleId, ofSale] of sales) {
    const orders = ofSale.map(({ id }) => id);
    const key = orders[0] ?? '';
    const metadata = metadataByOrder(ofSale);
    const moved: OrdersMoved = metadata === null ? { move, saleId, orders } : { move, saleId, orders, metadata };
    rows.push({ kind: 'orders_moved', key, payload: JSON.stringify(moved) });
    if (buckets === null) continue;
    const bucketCount = buckets.get(saleId);
    if (bucketCount === undefined) throw new SaleOutOfStep(saleId);
    const releases = ofSale.map((order): Release => ({
      saleId,
      bucket: homeBucket(order.user_id, bucketCount),
      userId: order.user_id,
      requestId: order.request_id,
      orderId: order.id,
      batchId: '',
      withUnits: true,
    }));
    rows.push({ kind: 'release', key, payload: JSON.stringify(releases) });
  }
  await execute(tx, knex('outbox').insert(rows));
}

/** Null if no order has metadata. */
function metadataByOrder(orders: readonly LockedOrder[]): MetadataTexts | null {
  const noted = orders.flatMap(({ id, metadata }) => (metadata === null ? [] : [[id, metadata] as const]));
  return noted.length === 0 ? null : Object.fromEntries(noted);
}
