import type { Knex } from 'knex';
import { idBelow, lowestOrderIdAt, MINT_BEHIND_MAX_MS } from '../core/order-id.js';
import { purchaseKey, splitPurchaseKey } from '../core/purchase.js';
import type { AgedOrder, ReconcileRepository } from '../core/ports/reconcile-repository.js';
import { OUTBOX_KINDS } from '../core/ports/outbox.js';
import { findInBoth, fromOrders, type OrderTable } from './both-tables.js';
import { ageOf, knex, msAgo, select } from './knex.js';
import { nextOrders, unlistedOrders } from './order-ranges.js';
import type { MysqlPool } from './pool.js';
import { findSale } from './sale-repository.js';
import type { Columns, OrderRow } from './tables.js';

/** Maximum number of rows per statement. This takes some tens of ms, far below any time-out. */
const WINDOW_ROWS = 10_000;

const COLUMNS = [
  'id',
  'user_id',
  'request_id',
  'batch_id',
  'quantity',
  'state',
  'reason',
] as const satisfies (keyof OrderRow)[];
type AgedRow = Columns<OrderRow, typeof COLUMNS> & { readonly age_us: string };

/** Each statement sees the data that is committed at that moment. */
export function createReconcileRepository(pool: MysqlPool, windowRows: number = WINDOW_ROWS): ReconcileRepository {
  return {
    findSale: (saleId) => findSale(pool, saleId),
    async undoneReleases(saleId) {
      const undone = knex('outbox').where({ kind: 'release' }).whereNull('done_at').where(ofSale(saleId));
      const [row] = await select(pool, undone.count<{ undone: string }[]>({ undone: '*' }));
      return Number(row?.undone ?? 0);
    },
    async isRestocked({ saleId, stock }) {
      const begun = await select(
        pool,
        knex('sale_edits').select('id').where({ sale_id: saleId, state: 'begun' }).limit(1),
      );
      return begun.length > 0 || (await findSale(pool, saleId))?.stock !== stock; // in this order: the stock ends an edit
    },
    async rowsOf(saleId, purchases) {
      if (purchases.length === 0) return [];
      const wanted = new Set(purchases.map(purchaseKey));
      const find = async (table: OrderTable, keys: readonly string[]): Promise<AgedOrder[]> => {
        const users = [...new Set(keys.map((key) => splitPurchaseKey(key).userId))];
        const ofUsers = fromOrders(table).where({ sale_id: saleId }).whereIn('user_id', users);
        const rows = await select(pool, ofUsers.select<AgedRow[]>(...COLUMNS, ageOf('updated_at')));
        return rows.map(agedOf).filter((row) => wanted.has(purchaseKey(row)));
      };
      return [...(await findInBoth([...wanted], find, purchaseKey))];
    },
    async orderPage(saleId, from) {
      const columns = [...COLUMNS, ageOf('updated_at')];
      const { rows, next } = await nextOrders<AgedRow>(pool, saleId, from, { columns, maxOrders: windowRows });
      return { rows: rows.map(agedOf), next };
    },
    async *unlistedOrders(sale) {
      const after = idBelow(lowestOrderIdAt(sale.opensAtMs - MINT_BEHIND_MAX_MS));
      const columns = [...COLUMNS, ageOf('updated_at')];
      for await (const rows of unlistedOrders<AgedRow>(pool, sale.saleId, after, columns, windowRows)) {
        yield rows.map(agedOf);
      }
    },
    async parkedBatches(batchIds) {
      if (batchIds.length === 0) return new Set();
      const parked = knex('dead_letters').select('batch_id').whereIn('batch_id', batchIds).where({ state: 'parked' });
      const found = (await select(pool, parked)).map((row) => row.batch_id);
      return new Set(found.filter((batchId) => batchId !== null));
    },
    /** Reads rows that are due longest first, along the index of undone rows. The primary key leads past all done rows. */
    async stuckRows(saleId, { olderThanMs, attemptsMin }, max) {
      const stuck = knex
        .from(knex.raw('outbox FORCE INDEX (due_at)'))
        .select<{ id: string; attempts: number; age_us: string }[]>('id', 'attempts', ageOf('created_at'))
        .whereIn('kind', OUTBOX_KINDS)
        .whereNull('done_at')
        .where((late) => late.where('created_at', '<=', msAgo(olderThanMs)).orWhere('attempts', '>=', attemptsMin))
        .where(ofSale(saleId))
        .limit(max);
      const rows = await select(pool, stuck);
      return rows.map(({ id, attempts, age_us }) => ({ outboxId: id, attempts, ageMs: Number(age_us) / 1000 }));
    },
    async isDone(outboxId): Promise<boolean> {
      const undone = knex('outbox').select('id').where({ id: outboxId }).whereNull('done_at');
      return (await select(pool, undone)).length === 0;
    },
  };
}

/** The previous release writes no `sale_id`. Sale ids are digits, so they need no escaping. */
const ofSale =
  (saleId: string) =>
  (rows: Knex.QueryBuilder): void =>
    void rows
      .where({ sale_id: saleId })
      .orWhere((old) => old.whereNull('sale_id').where('payload', 'like', `%"saleId":"${saleId}"%`));

/** Written out, because a rebuild calls it for every order, and a spread would dominate its cost. */
const agedOf = (row: AgedRow): AgedOrder => ({
  orderId: row.id,
  userId: row.user_id,
  requestId: row.request_id,
  batchId: row.batch_id,
  quantity: row.quantity,
  state: row.state,
  reason: row.reason,
  ageMs: Number(row.age_us) / 1000,
});
