import { Bug } from '../core/errors.js';
import { SALE_STATES, SALE_TRANSITIONS, saleAction, type NewSale, type Sale, type SaleState } from '../core/sale.js';
import { SYSTEM_ACTOR, type SaleRepository, type SaleFilter } from '../core/ports/sale-repository.js';
import { insertAudit } from './audit-log.js';
import type { MysqlPool, Statements } from './pool.js';

interface SaleRow {
  readonly id: string;
  readonly sku: string;
  readonly title: string;
  readonly price_cents: number;
  readonly stock: number;
  readonly sold: number;
  readonly limit_per_buyer: number;
  readonly buckets: number;
  readonly opens_at: Date;
  readonly closes_at: Date;
  readonly state: SaleState;
  readonly epoch: number;
}

const COLUMNS = 'id, sku, title, price_cents, stock, sold, limit_per_buyer, buckets, opens_at, closes_at, state, epoch';

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
    const { insertId } = await tx.execute(
      'INSERT INTO sales (sku, title, price_cents, stock, limit_per_buyer, buckets, opens_at, closes_at)' +
        ' VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
      [
        sale.sku,
        sale.title,
        sale.priceCents,
        sale.stock,
        sale.limitPerBuyer,
        sale.buckets,
        new Date(sale.opensAtMs),
        new Date(sale.closesAtMs),
      ],
    );
    const created = await findSale(tx, insertId);
    if (created === null) throw new Bug(`sale ${insertId} vanished after its INSERT`);
    const action = saleAction('draft', 'draft');
    await insertAudit(tx, { actor, action, subject: `sale:${insertId}`, before: null, after: created });
    return created;
  });
}

/** A sale as this connection sees it, inside a transaction too. */
export async function findSale(sql: Statements, saleId: string): Promise<Sale | null> {
  const [row] = await sql.query<SaleRow>(`SELECT ${COLUMNS} FROM sales WHERE id = ?`, [saleId]);
  return row === undefined ? null : saleOf(row);
}

async function list(pool: MysqlPool, { states = SALE_STATES, max, order = 'newest' }: SaleFilter): Promise<Sale[]> {
  if (states.length === 0) return [];
  const by = order === 'newest' ? 'id DESC' : 'closes_at DESC, id DESC';
  const sql = `SELECT ${COLUMNS} FROM sales WHERE state IN (?) ORDER BY ${by} LIMIT ?`;
  return (await pool.query<SaleRow>(sql, [states, max])).map(saleOf);
}

/**
 * The row is locked first, so that the audit says what this move has changed and not what another one did; who was
 * there before, or came second, reads the same answer.
 */
function move(
  pool: MysqlPool,
  saleId: string,
  to: SaleState,
  actor: string,
): Promise<{ readonly sale: Sale; readonly moved: boolean } | null> {
  return pool.transaction(async (tx) => {
    const [row] = await tx.query<SaleRow>(`SELECT ${COLUMNS} FROM sales WHERE id = ? FOR UPDATE`, [saleId]);
    if (row === undefined) return null;
    const before = saleOf(row);
    const mayMove = SALE_TRANSITIONS[before.state].includes(to);
    if (!mayMove && before.state !== to) return { sale: before, moved: false };
    if (mayMove) await tx.execute('UPDATE sales SET state = ? WHERE id = ?', [to, saleId]);
    await insertAudit(tx, {
      ...{ actor, action: saleAction(before.state, to), subject: `sale:${saleId}` },
      ...{ before: { state: before.state }, after: { state: to } },
    });
    return { sale: { ...before, state: to }, moved: true };
  });
}

const saleOf = (row: SaleRow): Sale => ({
  saleId: row.id,
  sku: row.sku,
  title: row.title,
  priceCents: row.price_cents,
  stock: row.stock,
  sold: row.sold,
  limitPerBuyer: row.limit_per_buyer,
  buckets: row.buckets,
  opensAtMs: row.opens_at.getTime(),
  closesAtMs: row.closes_at.getTime(),
  state: row.state,
  epoch: row.epoch,
});
