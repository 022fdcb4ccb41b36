import { batchIn, type Batch } from '../core/batch.js';
import { mintedAtMs } from '../core/order-id.js';
import type { RepairRepository } from '../core/ports/repair-stores.js';
import { insertAudit } from './audit-log.js';
import { bigint, execute, knex, select } from './knex.js';
import type { MysqlPool } from './pool.js';
import { findSale } from './sale-repository.js';

/** Maximum number of bodies per reply. A body has a few kB, at most 4 MiB. */
const DEAD_LETTERS_PER_PAGE = 100;

export function createRepairRepository(pool: MysqlPool): RepairRepository {
  return {
    /** Locks the row first. A writer of the old epoch has committed by then, or finds the new epoch. */
    raiseEpoch(saleId, atLeast, actor, reshard) {
      return pool.transaction(async (tx) => {
        const [row] = await select(
          tx,
          knex('sales').select('epoch', 'buckets', 'retirement').where({ id: saleId }).forUpdate(),
        );
        if (row === undefined || row.retirement !== 'none') return null;
        if (reshard !== undefined && row.buckets !== reshard.from) return null;
        const { epoch, buckets } = row;
        const changes = { epoch: knex.raw('GREATEST(epoch + 1, ?)', [atLeast]), buckets: reshard?.to ?? buckets };
        await execute(tx, knex('sales').where({ id: saleId }).update(changes));
        const raised = await findSale(tx, saleId);
        await insertAudit(tx, {
          actor,
          action: reshard ? 'sale.resharded' : 'sale.repaired',
          subject: `sale:${saleId}`,
          before: reshard ? { epoch, buckets } : { epoch },
          after: reshard ? { epoch: raised?.epoch, buckets: reshard.to } : { epoch: raised?.epoch },
        });
        return raised;
      });
    },
    /** Locks the row first, so that later claims see the entry of the first. */
    claimReshard(saleId, { from, to }, actor, perSecond) {
      return pool.transaction(async (tx) => {
        const [row] = await select(tx, knex('sales').select('state', 'buckets').where({ id: saleId }).forUpdate());
        if (row?.state !== 'open' || row.buckets !== from) return false;
        const subject = `sale:${saleId}`;
        const [before] = await select(tx, knex('audit_log').select('id').where({ subject, action: CLAIMED }).limit(1));
        if (before !== undefined) return false;
        const after = { buckets: to, perSecond };
        await insertAudit(tx, { actor, action: CLAIMED, subject, before: { buckets: from }, after });
        return true;
      });
    },
    async lastOrderMs(saleId) {
      const ranges = knex('order_ranges')
        .select('first_id')
        .where({ sale_id: bigint(saleId) });
      const [last] = await select(pool, ranges.orderBy('first_id', 'desc').limit(1));
      return last === undefined ? null : mintedAtMs(String(last.first_id));
    },
    /** Dead letters of deadlines and events name the sale too, but only batches hold units, unless forged. */
    async parkedBatchesOf(saleId) {
      const batches = new Map<string, Batch>();
      for (let last = '0'; ;) {
        const page = await select(
          pool,
          knex('dead_letters')
            .select('id', 'body')
            .where({ state: 'parked', sale_id: saleId })
            .whereNot({ reason: 'forged' })
            .where('id', '>', bigint(last))
            .orderBy('id')
            .limit(DEAD_LETTERS_PER_PAGE),
        );
        for (const { body } of page) {
          const batch = batchIn(body);
          if (batch?.saleId === saleId) batches.set(batch.batchId, batch);
        }
        const next = page.at(-1)?.id;
        if (next === undefined || page.length < DEAD_LETTERS_PER_PAGE) return [...batches.values()];
        last = next;
      }
    },
  };
}

const CLAIMED = 'sale.reshard_claimed';
