import { Bug } from '../core/errors.js';
import { SALE_STATES, SALE_TRANSITIONS, saleAction, type NewSale, type Sale, type SaleState } from '../core/sale.js';
import { SYSTEM_ACTOR, type SaleRepository, type SaleFilter } from '../core/ports/sale-repository.js';
import { insertAudit } from './audit-log.js';
import { execute, knex, now, select } from './knex.js';
import type { MysqlPool, Statements } from './pool.js';
import { SALE_COLUMNS, saleOf } from './tables.js';

/** The sales, in MySQL. */
export function createSaleRepository(pool: MysqlPool): SaleRepository {
  return {
    create: (sale, actor = SYSTEM_ACTOR) => create(pool, sale, actor),
    find: (saleId) => findSale(pool, saleId),
    list: (filter) => list(pool, filter),
    move: (saleId, to, actor = SYSTEM_ACTOR) => move(pool, saleId, to, actor),
  };
}

function create(pool: MysqlPool, sale: NewSale, actor: string): Promise<Sale> {
  return pool.transaction(async (tx) => {
    const row = {
      sku: sale.sku,
      title: sale.title,
      price_cents: sale.priceCents,
      stock: sale.stock,
      limit_per_buyer: sale.limitPerBuyer,
      buckets: sale.buckets,
      opens_at: new Date(sale.opensAtMs),
      closes_at: new Date(sale.closesAtMs),
    };
    const { insertId } = await execute(tx, knex('sales').insert(row));
    const created = await findSale(tx, insertId);
    if (created === null) throw new Bug(`sale ${insertId} vanished after its INSERT`);
    const action = saleAction('draft', 'draft');
    await insertAudit(tx, { actor, action, subject: `sale:${insertId}`, before: null, after: created });
    return created;
  });
}

/** A sale as this connection sees it, inside a transaction too. */
export async function findSale(on: Statements, saleId: string): Promise<Sale | null> {
  const [row] = await select(
    on,
    knex('sales')
      .select(...SALE_COLUMNS)
      .where({ id: saleId }),
  );
  return row === undefined ? null : saleOf(row);
}

async function list(
  pool: MysqlPool,
  { states = SALE_STATES, retired, max, order = 'newest' }: SaleFilter,
): Promise<Sale[]> {
  if (states.length === 0) return [];
  let sales = knex('sales')
    .select(...SALE_COLUMNS)
    .whereIn('state', states);
  if (retired === false) sales = sales.where({ retirement: 'none' });
  if (order === 'closed_last') sales = sales.orderBy('closes_at', 'desc');
  return (await select(pool, sales.orderBy('id', 'desc').limit(max))).map(saleOf);
}

/**
 * The row is locked first, so that the audit log says what this move changed and not what another one did; whoever was
 * there before, or came second, reads the same answer.
 */
function move(
  pool: MysqlPool,
  saleId: string,
  to: SaleState,
  actor: string,
): Promise<{ readonly sale: Sale; readonly moved: boolean } | null> {
  return pool.transaction(async (tx) => {
    const [row] = await select(
      tx,
      knex('sales')
        .select(...SALE_COLUMNS)
        .where({ id: saleId })
        .forUpdate(),
    );
    if (row === undefined) return null;
    const before = saleOf(row);
    const mayMove = SALE_TRANSITIONS[before.state].includes(to);
    if (!mayMove && before.state !== to) return { sale: before, moved: false };
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
