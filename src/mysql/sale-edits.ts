import type { SaleChange, SaleEdit, SaleEdits, EditState } from '../core/ports/sale-edits.js';
import type { Sale } from '../core/sale.js';
import { actorColumn, insertAudit } from './audit-log.js';
import { execute, knex, msAgo, select } from './knex.js';
import type { MysqlPool, Transaction } from './pool.js';
import { calendarOf, lockCalendar, lockSale } from './sale-repository.js';
import type { Columns, SaleEditRow } from './tables.js';
import { withoutUndefined } from '../core/without-undefined.js';

const EDIT_COLUMNS = ['id', 'sale_id', 'units', 'epoch'] as const;
const editOf = ({ id, sale_id, units, epoch }: Columns<SaleEditRow, typeof EDIT_COLUMNS>): SaleEdit => ({
  editId: id,
  saleId: sale_id,
  units,
  epoch,
});

/** Locks the row of the sale first, so that edits, moves and repairs of a sale follow one another. */
export function createSaleEdits(pool: MysqlPool): SaleEdits {
  return {
    begin: (saleId, change, actor, check) =>
      pool.transaction(async (tx) => {
        if (change.closesAtMs !== undefined) await lockCalendar(tx);
        const sale = await lockSale(tx, saleId);
        if (sale === null) return { outcome: 'not_found' };
        const [earlier] = await select(
          tx,
          knex('sale_edits')
            .select(...EDIT_COLUMNS)
            .where({ sale_id: saleId, state: 'begun' })
            .limit(1),
        );
        if (earlier !== undefined) return { outcome: 'busy', edit: editOf(earlier) };
        const calendar = change.closesAtMs === undefined ? [] : await calendarOf(tx, [sale.sku]);
        const errors = check(
          sale,
          calendar.filter((entry) => entry.saleId !== saleId),
        );
        if (errors === 'wrong_state') return { outcome: 'wrong_state', sale };
        if (errors.length > 0) return { outcome: 'wrong', errors };
        return { outcome: 'begun', ...(await makeChange(tx, sale, change, actor)) };
      }),

    finish: (edit) =>
      ended(pool, edit, async (tx, sale, actor) => {
        if (edit.units >= 0) return 'done';
        const { saleId, units } = edit;
        const lower = knex('sales').where({ id: saleId }).whereRaw('sold <= stock + ?', [units]);
        const { affectedRows } = await execute(tx, lower.update({ stock: knex.raw('stock + ?', [units]) }));
        if (affectedRows === 1) {
          await audit(tx, saleId, actor, { stock: sale.stock }, { stock: sale.stock + units });
          return 'done';
        }
        // MySQL has sold units that Redis had given up, so the units go back
        await execute(
          tx,
          knex('sale_edits').insert({ sale_id: saleId, units: -units, epoch: edit.epoch, actor: actorColumn(actor) }),
        );
        return 'refused';
      }),

    refuse: (edit) => ended(pool, edit, () => Promise.resolve('refused')),

    takeUp: (edit) =>
      pool.transaction(async (tx) => {
        const sale = await lockSale(tx, edit.saleId);
        if (sale === null) return null;
        const begun = knex('sale_edits').where({ id: edit.editId, state: 'begun' });
        await execute(tx, begun.clone().update({ epoch: sale.epoch }));
        const [row] = await select(tx, begun.clone().select(...EDIT_COLUMNS));
        return row === undefined ? null : editOf(row);
      }),

    async unfinished(afterMs, max): Promise<SaleEdit[]> {
      const old = knex('sale_edits')
        .select(...EDIT_COLUMNS)
        .where({ state: 'begun' })
        .where('created_at', '<=', msAgo(afterMs));
      return (await select(pool, old.orderBy('id').limit(max))).map(editOf);
    },

    remove: (saleId, actor) =>
      pool.transaction(async (tx) => {
        const sale = await lockSale(tx, saleId);
        if (sale?.state !== 'draft') return sale;
        await execute(tx, knex('sales').where({ id: saleId }).delete());
        await insertAudit(tx, { actor, action: 'sale.deleted', subject: `sale:${saleId}`, before: sale, after: null });
        return sale;
      }),
  };
}

async function makeChange(
  tx: Transaction,
  sale: Sale,
  { title, priceCents, closesAtMs, stock, paymentWindowMs, coupon }: SaleChange,
  actor: string,
): Promise<{ readonly sale: Sale; readonly edit: SaleEdit | null }> {
  const { saleId } = sale;
  const isDraft = sale.state === 'draft';
  const units = (stock ?? sale.stock) - sale.stock;
  const takesLater = units < 0 && !isDraft;
  const redisChanges = units !== 0 || (closesAtMs !== undefined && closesAtMs !== sale.closesAtMs);
  const next: Sale = {
    ...sale,
    ...withoutUndefined({ title, priceCents, closesAtMs, paymentWindowMs, coupon }),
    ...(stock === undefined || takesLater ? {} : { stock }),
    epoch: sale.epoch + (isDraft && redisChanges ? 1 : 0),
  };
  const [before, after] = differences(sale, next);
  if (Object.keys(after).length > 0) {
    const row = {
      title: next.title,
      price_cents: next.priceCents,
      closes_at: new Date(next.closesAtMs),
      stock: next.stock,
      payment_window_ms: next.paymentWindowMs,
      coupon: next.coupon ?? null,
      epoch: next.epoch,
    };
    await execute(tx, knex('sales').where({ id: saleId }).update(row));
    await audit(tx, saleId, actor, before, after);
  }
  if (isDraft || !redisChanges) return { sale: next, edit: null };
  const row = { sale_id: saleId, units, epoch: sale.epoch, actor: actorColumn(actor) };
  const { insertId: editId } = await execute(tx, knex('sale_edits').insert(row));
  return { sale: next, edit: { editId, saleId, units, epoch: sale.epoch } };
}

function differences(before: Sale, after: Sale): [Partial<Sale>, Partial<Sale>] {
  const keys = (Object.keys(after) as (keyof Sale)[]).filter((key) => before[key] !== after[key]);
  const only = (sale: Sale): Partial<Sale> => Object.fromEntries(keys.map((key) => [key, sale[key]]));
  return [only(before), only(after)];
}

/** Ends an edit that has begun and is still of the current epoch, in the state that `work` returns. */
function ended(
  pool: MysqlPool,
  { editId, saleId, units, epoch }: SaleEdit,
  work: (tx: Transaction, sale: Sale, actor: string) => Promise<Exclude<EditState, 'begun'>>,
): Promise<EditState | 'moved'> {
  return pool.transaction(async (tx) => {
    const sale = await lockSale(tx, saleId);
    const [row] = await select(tx, knex('sale_edits').select('state', 'epoch', 'actor').where({ id: editId }));
    if (sale === null || row === undefined) return 'refused';
    if (row.state !== 'begun') return row.state;
    if (row.epoch !== epoch || (units < 0 && sale.epoch !== epoch)) return 'moved';
    const state = await work(tx, sale, row.actor);
    await execute(tx, knex('sale_edits').where({ id: editId }).update({ state }));
    return state;
  });
}

const audit = (tx: Transaction, saleId: string, actor: string, before: object, after: object): Promise<void> =>
  insertAudit(tx, { actor, action: 'sale.edited', subject: `sale:${saleId}`, before, after });
