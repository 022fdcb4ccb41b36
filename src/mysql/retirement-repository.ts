import type { RetirementRepository } from '../core/ports/sale-repository.js';
import type { Sale } from '../core/sale.js';
import { insertAudit } from './audit-log.js';
import { execute, knex, msAgo, now, select } from './knex.js';
import type { MysqlPool } from './pool.js';
import { SALE_COLUMNS, saleOf, type SaleRow } from './tables.js';

export function createRetirementRepository(pool: MysqlPool): RetirementRepository {
  return {
    async due(afterMs, max): Promise<Sale[]> {
      const over = knex
        .from<SaleRow>(knex.raw('sales FORCE INDEX (retirement)')) // MySQL 8.0 would read and sort all sales
        .select(...SALE_COLUMNS)
        .where({ state: 'closed', retirement: 'none' })
        .where(knex.raw('LEAST(closes_at, COALESCE(closed_at, closes_at))'), '<=', msAgo(afterMs))
        .orderBy(['closes_at', 'id'])
        .limit(max);
      return (await select(pool, over)).map(saleOf);
    },

    retire: ({ saleId, epoch }, actor) =>
      pool.transaction(async (tx) => {
        const closed = knex('sales').where({ id: saleId, state: 'closed', retirement: 'none', epoch });
        const retired = closed.update({ retirement: 'begun', retired_at: now() });
        if ((await execute(tx, retired)).affectedRows === 0) return false;
        const subject = `sale:${saleId}`;
        await insertAudit(tx, { actor, action: 'sale.retired', subject, before: { epoch }, after: null });
        return true;
      }),

    async toForget(afterMs, max): Promise<Sale[]> {
      const begun = knex('sales')
        .select(...SALE_COLUMNS)
        .where({ state: 'closed', retirement: 'begun' })
        .where('retired_at', '<=', msAgo(afterMs))
        .orderBy(['closes_at', 'id'])
        .limit(max);
      return (await select(pool, begun)).map(saleOf);
    },

    async forgotten(saleId): Promise<void> {
      await execute(pool, knex('sales').where({ id: saleId, retirement: 'begun' }).update({ retirement: 'done' }));
    },
  };
}
