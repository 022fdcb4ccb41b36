import type { Knex } from 'knex';
import { assert } from '../core/errors.js';
import { isUnpaid, type PurchaseState } from '../core/order.js';
import type { ArchiveStep, OrderArchive } from '../core/ports/order-archive.js';
import type { OrderCursor } from '../core/ports/reconcile-repository.js';
import { insertAudit } from './audit-log.js';
import { bigint, execute, inMs, knex, msAgo, now, select } from './knex.js';
import { idIn } from './move-orders.js';
import { behind, idsIn, rangesAfter, START, windowsOf } from './order-ranges.js';
import type { MysqlPool, Statements, Transaction } from './pool.js';
import { ORDER_COLUMNS } from './tables.js';

/** Tables that move with an order, and all columns but generated ones. A test compares the lists with the tables. */
export const ARCHIVED = [
  { table: 'orders', orderId: 'id', columns: [...ORDER_COLUMNS, 'one_per_buyer', 'updated_at'] },
  {
    table: 'payments',
    orderId: 'order_id',
    columns: ['payment_id', 'order_id', 'sale_id', 'amount_cents', 'created_at'],
  },
  { table: 'order_metadata', orderId: 'order_id', columns: ['order_id', 'sale_id', 'metadata'] },
  { table: 'order_traces', orderId: 'order_id', columns: ['order_id', 'sale_id', 'trace_id'] },
  { table: 'coupons', orderId: 'order_id', columns: ['order_id', 'sale_id', 'user_id', 'created_at'] },
] as const;

/** @param youngMs minimum age of an order that moves; a transaction may still be writing a younger one */
export function createOrderArchive(pool: MysqlPool, youngMs: number): OrderArchive {
  return {
    async due(afterMs, max): Promise<string[]> {
      const sales = (retirement: 'archiving' | 'done') =>
        knex('sales').select('id', 'archive_after', 'retired_at').where({ retirement }).limit(max);
      const begun = sales('archiving').where((due) => {
        void due.whereNull('archive_after').orWhere('archive_after', '<=', now());
      });
      const ready = sales('done').whereNull('archive_after').where('retired_at', '<=', msAgo(afterMs));
      const rows = [
        ...(await select(pool, begun.orderBy('archive_after'))).map(({ id, archive_after: at }) => {
          return { id, dueMs: at?.getTime() ?? 0 };
        }),
        ...(await select(pool, ready.orderBy('retired_at'))).map(({ id, retired_at: at }) => {
          return { id, dueMs: (at?.getTime() ?? 0) + afterMs };
        }),
      ];
      return rows
        .sort((a, b) => a.dueMs - b.dueMs)
        .slice(0, max)
        .map(({ id }) => id);
    },

    begin: (saleId, actor) =>
      pool.transaction(async (tx) => {
        const ready = knex('sales').where({ id: saleId, state: 'closed', retirement: 'done' });
        const archiving = { retirement: 'archiving', archive_after: knex.raw<Date>('retired_at') } as const; // keeps its turn
        const begun = ready.update({ ...archiving, epoch: knex.raw('epoch + 1') });
        if ((await execute(tx, begun)).affectedRows === 0) return;
        await insertAudit(tx, { actor, action: 'sale.archived', subject: `sale:${saleId}`, before: null, after: null });
      }),

    move: (saleId, from, max) => pool.transaction((tx) => move(tx, saleId, from ?? START, max, youngMs)),

    async later(saleId, afterMs): Promise<void> {
      const begun = knex('sales').where({ id: saleId, retirement: 'archiving' });
      await execute(pool, begun.update({ archive_after: inMs(afterMs) }));
    },

    async finish(saleId): Promise<boolean> {
      const begun = knex('sales').where({ id: saleId, retirement: 'archiving' });
      const empty = begun.whereNotExists(knex('order_ranges').where({ sale_id: saleId }).select('first_id'));
      await execute(pool, empty.update({ retirement: 'archived' }));
      const ended = knex('sales').select('id').where({ id: saleId, retirement: 'archived' });
      return (await select(pool, ended)).length === 1;
    },
  };
}

/** Moves orders of a few ranges. A range stays until it is empty, so that its orders can be found after a crash. */
async function move(
  tx: Transaction,
  saleId: string,
  start: OrderCursor,
  max: number,
  youngMs: number,
): Promise<ArchiveStep> {
  const taken = await rangesAfter(tx, saleId, start.afterFirst, max);
  const ids = await idsIn(tx, saleId, windowsOf(taken, start.readTo), max);
  const step = await moveSome(tx, ids, youngMs);
  const last = ids.at(-1);
  if (ids.length === max && last !== undefined) {
    return { ...step, next: { afterFirst: start.afterFirst, readTo: last } }; // the same ranges may contain more
  }
  const isLeft = (await idsIn(tx, saleId, windowsOf(taken, START.readTo), 1)).length > 0;
  if (taken.ranges.length > 0 && !isLeft) {
    // by first id, because a worker may have committed another range between these
    const names = taken.ranges.map((range) => bigint(range.first_id));
    await execute(tx, knex('order_ranges').where({ sale_id: saleId }).whereIn('first_id', names).delete());
  }
  return { ...step, next: behind(taken, start) };
}

interface LockedRow {
  readonly id: string;
  readonly state: PurchaseState;
  /** A boolean is a 32-bit number in MariaDB. In MySQL it is a BIGINT, and therefore a text. */
  readonly is_old: number | string;
}

/** Copies and deletes unlocked rows. Does not use IGNORE, because an order that is already archived must stop it. */
async function moveSome(
  tx: Transaction,
  ids: readonly string[],
  youngMs: number,
): Promise<Pick<ArchiveStep, 'moved' | 'kept'>> {
  if (ids.length === 0) return { moved: 0, kept: 0 };
  const rows = knex('orders')
    .select<LockedRow[]>('id', 'state', knex.raw('created_at <= ? AS is_old', [msAgo(youngMs)]))
    .whereRaw(idIn(ids));
  const locked = await select(tx, rows.orderBy('id').forUpdate().skipLocked());
  const ended = locked.filter((row) => !isUnpaid(row.state) && Number(row.is_old) === 1);
  const open = await withOpenMoney(
    tx,
    ended.map(({ id }) => id),
  );
  const moved = ended.map(({ id }) => id).filter((id) => !open.has(id));
  const counts = { moved: moved.length, kept: locked.length - moved.length };
  if (moved.length === 0) return counts;
  for (const { table, orderId, columns } of ARCHIVED) {
    const list = columns.map((column) => `\`${column}\``).join(', ');
    const ofOrders = idIn(moved, orderId);
    const copy = `INSERT INTO ${table}_archive (${list}) SELECT ${list} FROM ${table} WHERE ${ofOrders}`;
    const copied = (await tx.execute(copy)).affectedRows;
    const { affectedRows: deleted } = await tx.execute(`DELETE FROM ${table} WHERE ${ofOrders}`);
    assert(deleted === copied, `${copied} rows of ${table} were copied to the archive, ${deleted} deleted`);
  }
  // All attempts have ended. A payment or refund to which an attempt led is kept.
  await tx.execute(`DELETE FROM payment_attempts WHERE ${idIn(moved, 'order_id')}`);
  return counts;
}

/** Finds orders with a charge that may have taken money, or with money that is owed back. */
async function withOpenMoney(on: Statements, orderIds: readonly string[]): Promise<ReadonlySet<string>> {
  if (orderIds.length === 0) return new Set();
  const of = (rows: Knex.QueryBuilder) => rows.select('order_id').whereRaw(idIn(orderIds, 'order_id'));
  const found = [
    ...(await select(on, of(knex('payment_attempts')).where({ state: 'open' }))),
    ...(await select(on, of(knex('refunds')).where({ state: 'due' }))),
    ...(await select(on, of(knex('order_refunds')).where({ state: 'due' }))),
  ] as { readonly order_id: string }[];
  return new Set(found.map((row) => row.order_id));
}
