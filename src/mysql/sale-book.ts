import { Bug } from '../domain/errors.js';
import { SALE_STATES, SALE_TRANSITIONS, type NewSale, type Sale, type SaleState } from '../domain/sale.js';
import type { SaleBook } from '../ports/sale-book.js';
import type { MysqlPool } from './pool.js';

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
export function createSaleBook(pool: MysqlPool): SaleBook {
  return {
    create: (sale) => create(pool, sale),
    find: (saleId) => find(pool, saleId),
    list: (filter) => list(pool, filter),
    move: (saleId, to) => move(pool, saleId, to),
  };
}

async function create(pool: MysqlPool, sale: NewSale): Promise<Sale> {
  const { insertId } = await pool.execute(
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
  const created = await find(pool, insertId);
  if (created === null) throw new Bug(`sale ${insertId} vanished after its INSERT`);
  return created;
}

async function find(pool: MysqlPool, saleId: string): Promise<Sale | null> {
  const [row] = await pool.query<SaleRow>(`SELECT ${COLUMNS} FROM sales WHERE id = ?`, [saleId]);
  return row === undefined ? null : saleOf(row);
}

async function list(
  pool: MysqlPool,
  { states = SALE_STATES, max }: { readonly states?: readonly SaleState[]; readonly max: number },
): Promise<Sale[]> {
  if (states.length === 0) return [];
  const sql = `SELECT ${COLUMNS} FROM sales WHERE state IN (?) ORDER BY id DESC LIMIT ?`;
  return (await pool.query<SaleRow>(sql, [states, max])).map(saleOf);
}

/** The UPDATE names the states it may leave; who was there before, or came second, reads the same answer. */
async function move(
  pool: MysqlPool,
  saleId: string,
  to: SaleState,
): Promise<{ readonly sale: Sale; readonly moved: boolean } | null> {
  const from = SALE_STATES.filter((state) => SALE_TRANSITIONS[state].includes(to));
  if (from.length > 0)
    await pool.execute('UPDATE sales SET state = ? WHERE id = ? AND state IN (?)', [to, saleId, from]);
  const sale = await find(pool, saleId);
  return sale === null ? null : { sale, moved: sale.state === to };
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
