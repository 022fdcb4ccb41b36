import { isLive, stateOf, type Order } from '../../src/core/order.js';
import type { AuditedOrder } from '../../src/core/ports/reconcile-repository.js';
import type { Sale } from '../../src/core/sale.js';
import { nextOrders, unlistedOrders, type PageOf } from '../../src/mysql/order-ranges.js';
import type { MysqlPool } from '../../src/mysql/pool.js';
import { createReconcileRepository } from '../../src/mysql/reconcile-repository.js';
import type { OrderRow } from '../../src/mysql/tables.js';

/** An order that an audit compares with Redis and with the answers to clients. */
export type AuditedRow = AuditedOrder & Pick<Order, 'paidAtMs'>;

/** All rows of a sale at rest. */
export interface OrderAudit {
  /** @throws OperationalError mysql */
  findSale(saleId: string): Promise<Sale | null>;
  /**
   * Yields every row of the sale, in chunks.
   * @throws OperationalError mysql
   */
  orders(saleId: string): AsyncIterable<readonly AuditedRow[]>;
  /**
   * Counts outbox rows that must be done before the sale is at rest: unfinished releases.
   * @throws OperationalError mysql
   */
  undoneReleases(saleId: string): Promise<number>;
}

export interface AuditOptions {
  /** Number of rows that one statement reads. */
  readonly windowRows?: number;
  /**
   * Always searches the whole table for orders outside of all `order_ranges`. False, for audits of thousands of sales:
   * only if the live orders do not add up to `sold`.
   */
  readonly searchAll?: boolean;
}

const COLUMNS = [
  'id',
  'user_id',
  'request_id',
  'batch_id',
  'quantity',
  'state',
  'after_paid',
  'reason',
  'paid_at',
] as const satisfies (keyof OrderRow)[];
type Row = Pick<OrderRow, (typeof COLUMNS)[number]>;

/** Reads all orders of a sale at rest. */
export function createOrderAudit(
  pool: MysqlPool,
  { windowRows = 10_000, searchAll = true }: AuditOptions = {},
): OrderAudit {
  const { findSale, undoneReleases } = createReconcileRepository(pool);
  return {
    findSale,
    undoneReleases,
    async *orders(saleId) {
      let liveUnits = 0;
      let page: PageOf<Row>;
      let cursor: PageOf<Row>['next'] = null;
      do {
        page = await nextOrders<Row>(pool, saleId, cursor, { columns: COLUMNS, maxOrders: windowRows });
        for (const { state, quantity } of page.rows) if (isLive(state)) liveUnits += quantity;
        if (page.rows.length > 0) yield page.rows.map(auditedOf);
        cursor = page.next;
      } while (cursor !== null);
      if (!searchAll && (await findSale(saleId))?.sold === liveUnits) return;
      for await (const rows of unlistedOrders<Row>(pool, saleId, '0', COLUMNS, windowRows)) yield rows.map(auditedOf);
    },
  };
}

const auditedOf = (row: Row): AuditedRow => ({
  orderId: row.id,
  userId: row.user_id,
  requestId: row.request_id,
  batchId: row.batch_id,
  quantity: row.quantity,
  state: stateOf(row.state, row.after_paid),
  reason: row.reason,
  paidAtMs: row.paid_at?.getTime() ?? null,
});
