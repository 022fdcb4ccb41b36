import { lowestOrderIdAt } from '../core/order-id.js';
import { type Purchase, purchaseKey } from '../core/purchase.js';
import type { Sale } from '../core/sale.js';
import { OUTBOX_KINDS } from '../core/ports/outbox.js';
import type {
  AgedOrder,
  MintedWindow,
  ReconcileRepository,
  StuckLimits,
  StuckRow,
} from '../core/ports/reconcile-repository.js';
import { createOrderAudit } from './order-audit.js';
import type { OrderRow } from './order-rows.js';
import type { MysqlPool } from './pool.js';

/** Rows that one statement reads: some tens of ms, far below any time-out of a statement. */
const WINDOW_ROWS = 10_000;
/** How far the clock of a worker may be behind when it mints the id of the first order. */
const CLOCK_SKEW_MS = 3_600_000;
/** Above every order id: they have 63 bits. */
const ID_MAX = '9223372036854775807';

type AgedRow = Pick<OrderRow, 'id' | 'user_id' | 'request_id' | 'batch_id' | 'quantity' | 'state' | 'reason'> & {
  readonly age_us: string;
};

const COLUMNS =
  'id, user_id, request_id, batch_id, quantity, state, reason,' +
  ' TIMESTAMPDIFF(MICROSECOND, updated_at, UTC_TIMESTAMP(3)) AS age_us';

/** Reads the book of a live sale. Each statement sees what is committed at its moment. */
export function createReconcileRepository(pool: MysqlPool, windowRows: number = WINDOW_ROWS): ReconcileRepository {
  const { findSale, undoneReleases } = createOrderAudit(pool);
  return {
    ...{ findSale, undoneReleases },
    rowsOf: (saleId, purchases) => rowsOf(pool, saleId, purchases),
    agedOrders: (sale, window = {}) => agedOrders(pool, sale, window, windowRows),
    parkedBatches: (batchIds) => parkedBatches(pool, batchIds),
    stuckRows: (saleId, limits, max) => stuckRows(pool, saleId, limits, max),
    async isKept(outboxId): Promise<boolean> {
      const rows = await pool.query('SELECT id FROM outbox WHERE id = ? AND done_at IS NULL', [outboxId]);
      return rows.length === 0;
    },
  };
}

async function rowsOf(
  pool: MysqlPool,
  saleId: string,
  purchases: readonly Pick<Purchase, 'userId' | 'requestId'>[],
): Promise<AgedOrder[]> {
  if (purchases.length === 0) return [];
  const wanted = new Set(purchases.map(purchaseKey));
  const users = [...new Set(purchases.map(({ userId }) => userId))];
  const rows = await pool.query<AgedRow>(`SELECT ${COLUMNS} FROM orders WHERE sale_id = ? AND user_id IN (?)`, [
    saleId,
    users,
  ]);
  return rows.map(agedOf).filter((row) => wanted.has(purchaseKey(row)));
}

/**
 * Walks the primary key, window by window, from the first id that an order of this sale can have: there is no index by
 * sale, which every insert of a rush would pay for. Ids go beyond 2^53, so they are compared as integers.
 */
async function* agedOrders(
  pool: MysqlPool,
  sale: Sale,
  { fromMs = sale.opensAtMs - CLOCK_SKEW_MS, toMs }: MintedWindow,
  windowRows: number,
): AsyncGenerator<readonly AgedOrder[]> {
  const stop = toMs === undefined ? ID_MAX : lowestOrderIdAt(toMs);
  const first = BigInt(lowestOrderIdAt(fromMs));
  let last = String(first > 0n ? first - 1n : first);
  for (;;) {
    const [window] = await pool.query<{ readonly end: string | null }>(
      'SELECT MAX(id) AS end FROM (SELECT id FROM orders' +
        ' WHERE id > CAST(? AS UNSIGNED) AND id < CAST(? AS UNSIGNED) ORDER BY id LIMIT ?) AS next',
      [last, stop, windowRows],
    );
    const end = window?.end ?? null;
    if (end === null) return;
    const rows = await pool.query<AgedRow>(
      `SELECT ${COLUMNS} FROM orders` +
        ' WHERE id > CAST(? AS UNSIGNED) AND id <= CAST(? AS UNSIGNED) AND sale_id = ? ORDER BY id',
      [last, end, sale.saleId],
    );
    yield rows.map(agedOf);
    last = end;
  }
}

async function parkedBatches(pool: MysqlPool, batchIds: readonly string[]): Promise<Set<string>> {
  if (batchIds.length === 0) return new Set();
  const rows = await pool.query<{ readonly batch_id: string }>(
    "SELECT batch_id FROM dead_letters WHERE batch_id IN (?) AND state = 'parked'",
    [batchIds],
  );
  return new Set(rows.map((row) => row.batch_id));
}

/** Only undone rows are looked at, and they are few. Sale ids are digits, so the pattern needs no escape. */
async function stuckRows(
  pool: MysqlPool,
  saleId: string,
  { olderThanMs, attemptsMin }: StuckLimits,
  max: number,
): Promise<StuckRow[]> {
  const rows = await pool.query<{ readonly id: string; readonly attempts: number; readonly age_us: string }>(
    'SELECT id, attempts, TIMESTAMPDIFF(MICROSECOND, created_at, UTC_TIMESTAMP(3)) AS age_us FROM outbox' +
      ' WHERE kind IN (?) AND done_at IS NULL' +
      ' AND (created_at <= UTC_TIMESTAMP(3) - INTERVAL ? MICROSECOND OR attempts >= ?)' +
      ' AND payload LIKE ? ORDER BY id LIMIT ?',
    [OUTBOX_KINDS, olderThanMs * 1000, attemptsMin, `%"saleId":"${saleId}"%`, max],
  );
  return rows.map(({ id, attempts, age_us: ageUs }) => ({ outboxId: id, attempts, ageMs: Number(ageUs) / 1000 }));
}

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
