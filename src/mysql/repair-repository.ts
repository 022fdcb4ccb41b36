import { decodeBatch, type Batch } from '../core/batch.js';
import type { Sale } from '../core/sale.js';
import type { RepairRepository, Reshard } from '../core/ports/repair-stores.js';
import { insertAudit } from './audit-log.js';
import type { MysqlPool } from './pool.js';
import { findSale } from './sale-repository.js';

/** Bodies of one reply; a body has some kB, at most 4 MiB. */
const DEAD_LETTERS_PER_PAGE = 100;

/** What the repair of a sale asks of MySQL. */
export function createRepairRepository(pool: MysqlPool): RepairRepository {
  return {
    raiseEpoch: (saleId, atLeast, actor, reshard) => raiseEpoch(pool, saleId, { atLeast, actor, reshard }),
    parkedBatchesOf: (saleId) => parkedBatchesOf(pool, saleId),
  };
}

/** The row is locked first: who writes orders of the old epoch has committed by then, or finds the new one. */
function raiseEpoch(
  pool: MysqlPool,
  saleId: string,
  {
    atLeast,
    actor,
    reshard,
  }: { readonly atLeast: number; readonly actor: string; readonly reshard?: Reshard | undefined },
): Promise<Sale | null> {
  return pool.transaction(async (tx) => {
    const [before] = await tx.query<{ readonly epoch: number; readonly buckets: number }>(
      'SELECT epoch, buckets FROM sales WHERE id = ? FOR UPDATE',
      [saleId],
    );
    if (before === undefined || (reshard !== undefined && before.buckets !== reshard.from)) return null;
    const buckets = reshard?.to ?? before.buckets;
    const sql = 'UPDATE sales SET epoch = GREATEST(epoch + 1, ?), buckets = ? WHERE id = ?';
    await tx.execute(sql, [atLeast, buckets, saleId]);
    const raised = await findSale(tx, saleId);
    const epochs = { before: { epoch: before.epoch }, after: { epoch: raised?.epoch } };
    const resharded = { before, after: { epoch: raised?.epoch, buckets } };
    const [action, change] = reshard ? ['sale.scattered', resharded] : ['sale.repaired', epochs];
    await insertAudit(tx, { actor, action, subject: `sale:${saleId}`, ...change });
    return raised;
  });
}

/** Letters of deadlines and events name the sale too; what is no batch of it holds no units. */
async function parkedBatchesOf(pool: MysqlPool, saleId: string): Promise<Batch[]> {
  const batches = new Map<string, Batch>();
  for (let last = '0'; ;) {
    const deadLetters = await pool.query<{ readonly id: string; readonly body: string }>(
      "SELECT id, body FROM dead_letters WHERE state = 'parked' AND sale_id = ? AND id > CAST(? AS UNSIGNED)" +
        ' ORDER BY id LIMIT ?',
      [saleId, last, DEAD_LETTERS_PER_PAGE],
    );
    for (const { body } of deadLetters) {
      const decoded = decodeBatch(body);
      if (decoded.outcome !== 'decoded' || decoded.batch.saleId !== saleId) continue;
      batches.set(decoded.batch.batchId, decoded.batch);
    }
    const next = deadLetters.at(-1)?.id;
    if (next === undefined || deadLetters.length < DEAD_LETTERS_PER_PAGE) return [...batches.values()];
    last = next;
  }
}
