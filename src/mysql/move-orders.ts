import { escape } from 'mysql2';
import { assert, OperationalError } from '../core/errors.js';
import { statesBefore, type OrderState } from '../core/order.js';
import { homeBucket } from '../core/sale.js';
import type { OrdersMoved } from '../core/ports/outbox.js';
import type { Release } from '../core/ports/batch-store.js';
import type { Transaction } from './pool.js';

/** What a move needs of an order whose row this transaction has locked. BIGINT comes as a string. */
export interface LockedOrder {
  readonly id: string;
  readonly sale_id: string;
  readonly user_id: string;
  readonly request_id: string;
  readonly quantity: number;
  readonly amount_cents: string;
  readonly state: OrderState;
}
export const LOCKED_COLUMNS = 'id, sale_id, user_id, request_id, quantity, amount_cents, state';

/** The `sales` row of orders that should end is missing, or counts fewer units than they have: I1 is broken there. */
export class SaleOutOfStep extends OperationalError {
  readonly saleId: string;

  constructor(saleId: string) {
    super('mysql', `sale ${saleId} counts fewer units sold than its orders have`, { retryable: false });
    this.name = 'SaleOutOfStep';
    this.saleId = saleId;
  }
}

/** Ids go into a list as they are: compared as integers, whatever a version makes of a list of texts. */
export const idList = (ids: readonly string[]): string => {
  assert(
    ids.every((id) => /^[0-9]{1,20}$/.test(id)),
    'an id is a decimal number',
  );
  return ids.join(',');
};

/**
 * Moves orders and writes what follows from it: the outbox, then `sales.sold`. The `sales` rows come last and by id,
 * as in the writer, so that the hot row is held for one round trip and the commit only.
 * @param orders at least one, all locked by `tx` and in a state that may move
 * @throws SaleOutOfStep, MysqlError
 */
export async function moveOrders(
  tx: Transaction,
  orders: readonly LockedOrder[],
  move: OrdersMoved['move'],
): Promise<void> {
  const paidAt = move === 'paid' ? ', paid_at = UTC_TIMESTAMP(3)' : '';
  const { affectedRows } = await tx.execute(
    `UPDATE orders SET state = ?${paidAt} WHERE id IN (${idList(orders.map(({ id }) => id))}) AND state IN (?)`,
    [move, statesBefore(move)],
  );
  assert(affectedRows === orders.length, `${affectedRows} of ${orders.length} locked orders moved to ${move}`);

  const sales = groupBySale(orders);
  await insertOutbox(tx, sales, move, move === 'paid' ? null : await bucketsOf(tx, [...sales.keys()]));
  if (move === 'paid') return; // paid units stay sold
  for (const [saleId, mine] of sales) {
    const units = mine.reduce((sum, { quantity }) => sum + quantity, 0);
    const lowered = await tx.execute('UPDATE sales SET sold = sold - ? WHERE id = ? AND sold >= ?', [
      ...[units, saleId, units],
    ]);
    if (lowered.affectedRows !== 1) throw new SaleOutOfStep(saleId);
  }
}

/** Sales in id order. */
function groupBySale(orders: readonly LockedOrder[]): Map<string, LockedOrder[]> {
  const sales = new Map<string, LockedOrder[]>();
  const inOrder = [...orders].sort((a, b) => Number(BigInt(a.sale_id) - BigInt(b.sale_id)));
  for (const order of inOrder) {
    const mine = sales.get(order.sale_id);
    if (mine) mine.push(order);
    else sales.set(order.sale_id, [order]);
  }
  return sales;
}

/** Number of buckets by sale; it never changes, so nothing is locked. */
async function bucketsOf(tx: Transaction, saleIds: readonly string[]): Promise<Map<string, number>> {
  const rows = await tx.query<{ readonly id: string; readonly buckets: number }>(
    `SELECT id, buckets FROM sales WHERE id IN (${idList(saleIds)})`,
  );
  return new Map(rows.map(({ id, buckets }) => [id, buckets]));
}

/** @param buckets null where no unit goes back */
async function insertOutbox(
  tx: Transaction,
  sales: ReadonlyMap<string, readonly LockedOrder[]>,
  move: OrdersMoved['move'],
  buckets: ReadonlyMap<string, number> | null,
): Promise<void> {
  const rows: string[] = [];
  for (const [saleId, mine] of sales) {
    const orders = mine.map(({ id }) => id);
    const row = (kind: string, payload: unknown): void => {
      rows.push(`('${kind}',${escape(orders[0])},${escape(JSON.stringify(payload))})`);
    };
    row('orders_moved', { move, saleId, orders } satisfies OrdersMoved);
    if (buckets === null) continue;
    const bucketCount = buckets.get(saleId);
    if (bucketCount === undefined) throw new SaleOutOfStep(saleId);
    const release = (order: LockedOrder): Release => ({
      ...{ saleId, bucket: homeBucket(order.user_id, bucketCount), userId: order.user_id },
      ...{ requestId: order.request_id, orderId: order.id, batchId: '', withUnits: true },
    });
    row('release', mine.map(release));
  }
  await tx.execute(`INSERT INTO outbox (kind, \`key\`, payload) VALUES ${rows.join(',')}`);
}
