import type { Order } from '../core/order.js';
import { type Purchase, purchaseKey } from '../core/purchase.js';
import type { OrderRepository, SaleTerms } from '../core/ports/order-repository.js';
import { ORDER_COLUMNS, orderOf, type OrderRow } from './order-rows.js';
import type { MysqlPool } from './pool.js';
import { writeOrders } from './write-orders.js';

interface TermsRow {
  readonly id: string;
  readonly epoch: number;
  readonly price_cents: number;
  readonly limit_per_buyer: number;
}

/** The orders, in MySQL. Reads see what is committed, each statement on its own. */
export function createOrderRepository(pool: MysqlPool): OrderRepository {
  return {
    termsOf: (saleIds) => termsOf(pool, saleIds),
    write: (plan) => writeOrders(pool, plan),
    findByPurchases: (saleId, purchases) => findByPurchases(pool, saleId, purchases),
    liveBuyers: (saleId, userIds) => liveBuyers(pool, saleId, userIds),
    findOrder: (orderId) => findOrder(pool, orderId),
  };
}

async function termsOf(pool: MysqlPool, saleIds: readonly string[]): Promise<Map<string, SaleTerms>> {
  if (saleIds.length === 0) return new Map();
  const rows = await pool.query<TermsRow>('SELECT id, epoch, price_cents, limit_per_buyer FROM sales WHERE id IN (?)', [
    saleIds,
  ]);
  return new Map(
    rows.map((row) => [
      row.id,
      { saleId: row.id, epoch: row.epoch, priceCents: row.price_cents, limitPerBuyer: row.limit_per_buyer },
    ]),
  );
}

/** Asks by buyer and compares the request here: no optimiser turns a list of pairs into a range on every version. */
async function findByPurchases(pool: MysqlPool, saleId: string, purchases: readonly Purchase[]): Promise<Order[]> {
  if (purchases.length === 0) return [];
  const wanted = new Set(purchases.map(purchaseKey));
  const [only] = purchases;
  const single = purchases.length === 1 && only !== undefined;
  const rows = single
    ? await pool.query<OrderRow>(
        `SELECT ${ORDER_COLUMNS} FROM orders WHERE user_id = ? AND sale_id = ? AND request_id = ?`,
        [only.userId, saleId, only.requestId],
      )
    : await pool.query<OrderRow>(`SELECT ${ORDER_COLUMNS} FROM orders WHERE sale_id = ? AND user_id IN (?)`, [
        saleId,
        [...new Set(purchases.map(({ userId }) => userId))],
      ]);
  return rows.map(orderOf).filter((order) => wanted.has(purchaseKey(order)));
}

async function liveBuyers(pool: MysqlPool, saleId: string, userIds: readonly string[]): Promise<Set<string>> {
  if (userIds.length === 0) return new Set();
  const rows = await pool.query<{ readonly user_id: string }>(
    'SELECT user_id FROM orders WHERE active_key = ? AND user_id IN (?)',
    [saleId, userIds],
  );
  return new Set(rows.map((row) => row.user_id));
}

async function findOrder(pool: MysqlPool, orderId: string): Promise<Order | null> {
  const [row] = await pool.query<OrderRow>(`SELECT ${ORDER_COLUMNS} FROM orders WHERE id = ?`, [orderId]);
  return row === undefined ? null : orderOf(row);
}
