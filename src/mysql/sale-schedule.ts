import { stepDueMs, type Sale } from '../core/sale.js';
import type { SaleSchedule } from '../core/ports/sale-repository.js';
import { insertAudit } from './audit-log.js';
import { bigint, execute, inMs, knex, msAgo, now, select } from './knex.js';
import type { MysqlPool } from './pool.js';
import { SALE_COLUMNS, saleOf } from './tables.js';

/** States in which a sale is live. A closed sale sells nothing and is only compared. */
const NOT_CLOSED = ['draft', 'warm', 'open', 'paused'] as const;

export function createSaleSchedule(pool: MysqlPool): SaleSchedule {
  const sales = () => knex('sales').select(...SALE_COLUMNS);
  const read = async (found: ReturnType<typeof sales>): Promise<Sale[]> => (await select(pool, found)).map(saleOf);
  return {
    due(max, behind) {
      let due = sales()
        .where('due_at', '<=', now())
        .whereIn('state', NOT_CLOSED)
        .where((still) => still.whereNot({ state: 'draft' }).orWhere('closes_at', '>', now()));
      const sinceMs = behind === undefined ? null : stepDueMs(behind);
      if (behind !== undefined && sinceMs !== null) {
        const since = new Date(sinceMs);
        // The index can follow the first condition. The second leaves out the rows of the previous page.
        due = due.where('due_at', '>=', since).whereNot((had) => {
          void had.where({ due_at: since }).where('id', '<=', bigint(behind.saleId));
        });
      }
      return read(due.orderBy(['due_at', 'id']).limit(max));
    },

    toCompare: (afterMs, max) =>
      read(
        sales()
          .where('due_at', '<=', now())
          .where({ state: 'closed', retirement: 'none' })
          .where('closes_at', '<=', msAgo(afterMs))
          .orderBy('due_at')
          .limit(max),
      ),

    compared: (saleId, actor) =>
      pool.transaction(async (tx) => {
        const equal = knex('sales').where({ id: saleId, state: 'closed' }).whereNull('compared_at');
        const { affectedRows } = await execute(tx, equal.update({ compared_at: now() }));
        if (affectedRows === 0) return false;
        const change = { before: { state: 'closed' }, after: { state: 'closed', compared: 'match' } };
        await insertAudit(tx, { actor, action: 'sale.compared', subject: `sale:${saleId}`, ...change });
        return true;
      }),

    async compareLater(saleId, afterMs): Promise<void> {
      await execute(
        pool,
        knex('sales')
          .where({ id: saleId })
          .update({ compare_after: inMs(afterMs) }),
      );
    },

    async coming(withinMs, max): Promise<Sale[]> {
      const soon = sales().whereIn('state', NOT_CLOSED).where('opens_at', '<=', inMs(withinMs));
      const found = await read(soon.where('closes_at', '>', now()).orderBy('opens_at').orderBy('id').limit(max));
      if (found.length === max) return found;
      const over = sales().whereIn('state', NOT_CLOSED).where('closes_at', '<=', now());
      const latest = await read(over.orderBy('closes_at', 'desc').limit(max - found.length));
      return [...latest.sort((a, b) => a.opensAtMs - b.opensAtMs), ...found];
    },
  };
}
