import { lowestOrderIdAt } from '../../core/order-id.js';
import type { Clock } from '../../core/ports/clock.js';
import { createAuditLog } from '../../mysql/audit-log.js';
import { idIn } from '../../mysql/move-orders.js';
import { ARCHIVED } from '../../mysql/order-archive.js';
import type { MysqlPool, Transaction } from '../../mysql/pool.js';
import { retryConflicts } from '../../mysql/retry-conflicts.js';

// Reads old records in the order of their keys, a limited number per transaction. Keeps open rows of any age.

/** The kinds of records, in the order in which they are purged: refunds after their payments. */
export const PURGED = [
  'archive',
  'coupons',
  'refunds',
  'cases',
  'dead-letters',
  'reconcile',
  'edits',
  'traces',
  'notifications',
  'webhooks',
  'audit',
] as const;
export type PurgedKind = (typeof PURGED)[number];

export interface PurgeProgress {
  readonly what: PurgedKind;
  /** Rows that were removed or, in a dry run, would be. For the archive, the number of orders. */
  readonly removed: number;
  /** Old rows that are kept because they are open. */
  readonly kept: number;
}

export interface PurgeOrder {
  /** Records that ended before this time are removed, Unix ms. */
  readonly beforeMs: number;
  readonly kinds: readonly PurgedKind[];
  readonly dryRun: boolean;
  readonly actor: string;
  /** Stops after the current transaction. */
  readonly signal?: AbortSignal;
}

/** Number of rows per transaction, which takes some tens of ms. */
const BATCH = 500;

interface OldRow {
  readonly id: string;
  readonly is_open: number | string;
}

const isOver = ({ is_open: isOpen }: OldRow): boolean => Number(isOpen) === 0;

interface Walk {
  /** A key that comes before every other. */
  readonly start: string;
  /** Returns the next rows that are old enough. Columns: `id`, `is_open`. */
  readonly page: (pool: MysqlPool, after: string, before: Date, max: number) => Promise<readonly OldRow[]>;
  readonly remove: (tx: Transaction, ids: readonly string[], before: Date) => Promise<number>;
}

/** Rows that have a number. `open` is an SQL condition for rows that are kept. */
function table(name: string, time: string, { key = 'id', open = 'FALSE', isNumber = true } = {}): Walk {
  const after = isNumber ? 'CAST(? AS UNSIGNED)' : '?';
  return {
    start: isNumber ? '0' : '',
    page: (pool, from, before, max) =>
      pool.query<OldRow>(
        `SELECT CAST(${key} AS CHAR) AS id, (${open}) AS is_open FROM ${name}
          WHERE ${key} > ${after} AND ${time} < ? ORDER BY ${name}.${key} LIMIT ?`,
        [from, before, max],
      ),
    async remove(tx, ids, before): Promise<number> {
      const [named, values] = isNumber ? [idIn(ids), []] : [`${key} IN (?)`, [ids]];
      const removed = `DELETE FROM ${name} WHERE ${named} AND ${time} < ? AND NOT (${open})`;
      return (await tx.execute(removed, [...values, before])).affectedRows;
    },
  };
}

/** An archived order is kept while money for it is unsettled. */
const OPEN_MONEY = `COALESCE(after_paid, '') IN ('refunding', 'disputed')
  OR EXISTS (SELECT 1 FROM refunds AS r WHERE r.order_id = orders_archive.id AND r.state = 'due')
  OR EXISTS (SELECT 1 FROM order_refunds AS r WHERE r.order_id = orders_archive.id AND r.state = 'due')
  OR EXISTS (SELECT 1 FROM payment_cases AS c WHERE c.order_id = orders_archive.id AND c.state = 'open')`;

const ARCHIVE: Walk = {
  start: '0',
  page: (pool, from, before, max) =>
    pool.query<OldRow>(
      `SELECT CAST(id AS CHAR) AS id, (${OPEN_MONEY}) AS is_open FROM orders_archive
        WHERE id > CAST(? AS UNSIGNED) AND id < CAST(? AS UNSIGNED) ORDER BY orders_archive.id LIMIT ?`,
      [from, lowestOrderIdAt(before.getTime()), max],
    ),
  async remove(tx, all) {
    // Checks the locked orders again, because a payment may just have been recorded. The first statement reads payments
    // from before its wait for locks.
    await tx.query(`SELECT id FROM orders_archive WHERE ${idIn(all)} FOR UPDATE`);
    const judged = `SELECT CAST(id AS CHAR) AS id, (${OPEN_MONEY}) AS is_open FROM orders_archive WHERE ${idIn(all)}`;
    const ids = (await tx.query<OldRow>(judged)).filter(isOver).map(({ id }) => id);
    if (ids.length === 0) return 0;
    let orders = 0;
    for (const { table: name, orderId } of ARCHIVED) {
      const { affectedRows } = await tx.execute(`DELETE FROM ${name}_archive WHERE ${idIn(ids, orderId)}`);
      if (name === 'orders') orders = affectedRows;
    }
    return orders;
  },
};

/** Trace ids, by order. They are removed before their orders, which are kept longer. */
const traces = (name: string): Walk => ({
  start: '0',
  page: (pool, from, before, max) =>
    pool.query<OldRow>(
      `SELECT CAST(order_id AS CHAR) AS id, 0 AS is_open FROM ${name}
        WHERE order_id > CAST(? AS UNSIGNED) AND order_id < CAST(? AS UNSIGNED) ORDER BY ${name}.order_id LIMIT ?`,
      [from, lowestOrderIdAt(before.getTime()), max],
    ),
  remove: async (tx, ids) => (await tx.execute(`DELETE FROM ${name} WHERE ${idIn(ids, 'order_id')}`)).affectedRows,
});

/** If a payment is reported again, its refund must still be found; otherwise it would seem to have paid the order. */
const paymentKept = (table: 'refunds' | 'order_refunds'): string =>
  `EXISTS (SELECT 1 FROM payments AS p WHERE p.payment_id = ${table}.payment_id)
  OR EXISTS (SELECT 1 FROM payments_archive AS p WHERE p.payment_id = ${table}.payment_id)`;

const WALKS: Readonly<Record<PurgedKind, readonly Walk[]>> = {
  archive: [ARCHIVE],
  coupons: [table('coupon_codes', 'expires_at', { key: 'code', open: "state = 'reserved'", isNumber: false })],
  refunds: [
    table('refunds', 'updated_at', {
      key: 'payment_id',
      open: `state = 'due' OR ${paymentKept('refunds')}`,
      isNumber: false,
    }),
    table('order_refunds', 'updated_at', { open: `state = 'due' OR ${paymentKept('order_refunds')}` }),
  ],
  cases: [table('payment_cases', 'updated_at', { open: "state = 'open'" })],
  'dead-letters': [table('dead_letters', 'updated_at', { open: "state = 'parked'" })],
  reconcile: [
    table('reconcile_runs', 'started_at', {
      open: 'finished_at IS NULL AND started_at > UTC_TIMESTAMP() - INTERVAL 1 DAY',
    }),
    table('compensation_jobs', 'updated_at', { open: "state = 'pending'" }),
    table('witness_findings', 'updated_at', { open: "state = 'open'" }),
  ],
  edits: [table('sale_edits', 'created_at', { open: "state = 'begun'" })],
  traces: [traces('order_traces'), traces('order_traces_archive')],
  notifications: [table('notifications', 'created_at')],
  webhooks: [table('webhook_deliveries', 'created_at', { open: "state = 'due'" })],
  audit: [table('audit_log', 'created_at')],
};

/**
 * May be stopped and repeated. Pauses after each transaction for as long as that took, to leave half of the server for
 * sales. @returns sums by kind; unreached kinds are missing. @throws OperationalError mysql
 */
export async function purge(
  { beforeMs, kinds, dryRun, actor, signal }: PurgeOrder,
  { pool, clock }: { readonly pool: MysqlPool; readonly clock: Clock },
  onProgress: (progress: PurgeProgress) => void = () => undefined,
): Promise<PurgeProgress[]> {
  const before = new Date(beforeMs);
  const done: PurgeProgress[] = [];
  if (!dryRun) {
    const after = { before: before.toISOString(), kinds };
    await createAuditLog(pool).append({ actor, action: 'data.purged', subject: 'database', before: null, after });
  }
  for (const what of PURGED.filter((kind) => kinds.includes(kind))) {
    let [removed, kept] = [0, 0];
    for (const walk of WALKS[what]) {
      for (let after = walk.start; signal?.aborted !== true;) {
        const startedMs = clock.monotonicMs();
        const rows = await walk.page(pool, after, before, BATCH);
        const ids = rows.filter(isOver).map(({ id }) => id);
        kept += rows.length - ids.length;
        if (dryRun) removed += ids.length;
        else if (ids.length > 0) {
          removed += await retryConflicts(clock, () => pool.transaction((tx) => walk.remove(tx, ids, before)));
        }
        onProgress({ what, removed, kept });
        const last = rows.at(-1);
        if (last === undefined || rows.length < BATCH) break;
        after = last.id;
        await clock.sleep(clock.monotonicMs() - startedMs);
      }
    }
    if (signal?.aborted === true) return done;
    done.push({ what, removed, kept });
  }
  return done;
}
