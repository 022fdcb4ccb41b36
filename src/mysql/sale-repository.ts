import type { Knex } from 'knex';
import { Bug } from '../core/errors.js';
import {
  isAsSeen,
  SALE_STATES,
  SALE_TRANSITIONS,
  saleAction,
  type NewSale,
  type Sale,
  type SaleState,
  type SeenSale,
} from '../core/sale.js';
import {
  SYSTEM_ACTOR,
  type CalendarEntry,
  type SaleFilter,
  type SaleRepository,
} from '../core/ports/sale-repository.js';
import { insertAudit } from './audit-log.js';
import { bigint, execute, knex, now, select } from './knex.js';
import type { MysqlPool, Statements, Transaction } from './pool.js';
import { SALE_COLUMNS, saleOf, type SaleRow } from './tables.js';
import { withoutUndefined } from '../core/without-undefined.js';

export function createSaleRepository(pool: MysqlPool): SaleRepository {
  return {
    create: (sale, actor = SYSTEM_ACTOR) => pool.transaction((tx) => insert(tx, sale, actor)),
    createAll: (sales, actor, check) =>
      pool.transaction(async (tx) => {
        await lockCalendar(tx);
        const wrong = check(await calendarOf(tx, skusOf(sales)));
        if (wrong.length > 0) return { wrong };
        const created: Sale[] = [];
        for (const sale of sales) created.push(await insert(tx, sale, actor));
        return { created };
      }),
    calendar: (skus) => calendarOf(pool, skus),
    find: (saleId) => findSale(pool, saleId),
    newestId: () => newestId(pool),
    list: (filter) => list(pool, filter),
    move: (saleId, to, actor = SYSTEM_ACTOR, seen) => move(pool, saleId, to, actor, seen),
  };
}

async function insert(tx: Transaction, sale: NewSale, actor: string): Promise<Sale> {
  const row = {
    sku: sale.sku,
    title: sale.title,
    price_cents: sale.priceCents,
    currency: sale.currency,
    stock: sale.stock,
    limit_per_buyer: sale.limitPerBuyer,
    buckets: sale.buckets,
    opens_at: new Date(sale.opensAtMs),
    closes_at: new Date(sale.closesAtMs),
    warms_at: sale.warmBeforeMs === null ? null : new Date(sale.opensAtMs - sale.warmBeforeMs),
    payment_window_ms: sale.paymentWindowMs,
    coupon: sale.coupon ?? null,
  };
  const { insertId } = await execute(tx, knex('sales').insert(row));
  const created = await findSale(tx, insertId);
  if (created === null) throw new Bug(`sale ${insertId} vanished after its INSERT`);
  const action = saleAction('draft', 'draft');
  await insertAudit(tx, { actor, action, subject: `sale:${insertId}`, before: null, after: created });
  return created;
}

const skusOf = (sales: readonly NewSale[]): string[] => [...new Set(sales.map(({ sku }) => sku))];

const SKUS_PER_READ = 500;

/** Required to add a sale or change its window. Take this lock before the row of a sale. */
export async function lockCalendar(tx: Transaction): Promise<void> {
  await select(tx, knex('sale_calendar').select('id').where({ id: 1 }).forUpdate());
}

/** Finds the sales of these SKUs that are not closed. */
export async function calendarOf(on: Statements, skus: readonly string[]): Promise<CalendarEntry[]> {
  const entries: CalendarEntry[] = [];
  for (let at = 0; at < skus.length; at += SKUS_PER_READ) {
    const rows = await select(
      on,
      knex('sales')
        .select('id', 'sku', 'opens_at', 'closes_at')
        .whereIn('sku', skus.slice(at, at + SKUS_PER_READ))
        .whereNot({ state: 'closed' })
        .orderBy('id'),
    );
    for (const { id, sku, opens_at, closes_at } of rows) {
      entries.push({ saleId: id, sku, opensAtMs: opens_at.getTime(), closesAtMs: closes_at.getTime() });
    }
  }
  return entries;
}

/** Finds a sale as this connection sees it, even inside a transaction. */
export async function findSale(on: Statements, saleId: string): Promise<Sale | null> {
  const [row] = await select(
    on,
    knex('sales')
      .select(...SALE_COLUMNS)
      .where({ id: saleId }),
  );
  return row === undefined ? null : saleOf(row);
}

async function newestId(pool: MysqlPool): Promise<string> {
  const [row] = await select(pool, knex('sales').select('id').orderBy('id', 'desc').limit(1));
  return row?.id ?? '0';
}

async function list(pool: MysqlPool, filter: SaleFilter): Promise<Sale[]> {
  const { states = SALE_STATES, retired, sku, opensFromMs, opensToMs, beforeId, max, order = 'newest' } = filter;
  if (states.length === 0) return [];
  let sales = knex
    .from<SaleRow>(order === 'closed_last' ? closedLast(filter) : 'sales')
    .select(...SALE_COLUMNS)
    .whereIn('state', states)
    .where(withoutUndefined({ sku }));
  if (opensFromMs !== undefined) sales = sales.where('opens_at', '>=', new Date(opensFromMs));
  if (opensToMs !== undefined) sales = sales.where('opens_at', '<', new Date(opensToMs));
  if (beforeId !== undefined) sales = sales.where('id', '<', bigint(beforeId));
  if (retired === false) sales = sales.where({ retirement: 'none' });
  if (order === 'closed_last') sales = sales.orderBy('closes_at', 'desc');
  return (await select(pool, sales.orderBy('id', 'desc').limit(max))).map(saleOf);
}

/** Forces the index with this order, because MySQL 8.0 would read and sort all sales if most are closed. */
const closedLast = ({ retired }: SaleFilter): Knex.Raw =>
  knex.raw('sales FORCE INDEX (??)', [retired === false ? 'retirement' : 'state_closes']);

export async function lockSale(tx: Transaction, saleId: string): Promise<Sale | null> {
  const [row] = await select(
    tx,
    knex('sales')
      .select(...SALE_COLUMNS)
      .where({ id: saleId })
      .forUpdate(),
  );
  return row === undefined ? null : saleOf(row);
}

/** Locks the row first, so that the audit log shows only this move. A repeated move gives the same answer. */
function move(
  pool: MysqlPool,
  saleId: string,
  to: SaleState,
  actor: string,
  seen: SeenSale | undefined,
): Promise<{ readonly sale: Sale; readonly moved: boolean } | null> {
  return pool.transaction(async (tx) => {
    const before = await lockSale(tx, saleId);
    if (before === null) return null;
    const mayMove = SALE_TRANSITIONS[before.state].includes(to);
    if (!mayMove && before.state !== to) return { sale: before, moved: false };
    if (seen !== undefined && !isAsSeen(before, seen)) return { sale: before, moved: false };
    const changes = to === 'closed' ? { state: to, closed_at: now() } : { state: to };
    if (mayMove) await execute(tx, knex('sales').where({ id: saleId }).update(changes));
    await insertAudit(tx, {
      actor,
      action: saleAction(before.state, to),
      subject: `sale:${saleId}`,
      before: { state: before.state },
      after: { state: to },
    });
    return { sale: { ...before, state: to }, moved: true };
  });
}
