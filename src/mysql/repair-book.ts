import { decodeBatch, type Batch } from '../core/batch.js';
import type { Sale } from '../core/sale.js';
import type { RepairBook, Scatter } from '../core/ports/repair-book.js';
import { insertAudit } from './audit-log.js';
import type { MysqlPool } from './pool.js';
import { findSale } from './sale-book.js';

/** Bodies of one reply; a body has some kB, at most 4 MiB. */
const LETTERS_PER_PAGE = 100;

/** What the repair of a sale asks of MySQL. */
export function createRepairBook(pool: MysqlPool): RepairBook {
  return {
    raiseEpoch: (saleId, atLeast, actor, scatter) => raiseEpoch(pool, saleId, { atLeast, actor, scatter }),
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
    scatter,
  }: { readonly atLeast: number; readonly actor: string; readonly scatter?: Scatter | undefined },
): Promise<Sale | null> {
  return pool.transaction(async (tx) => {
    const [before] = await tx.query<{ readonly epoch: number; readonly buckets: number }>(
      'SELECT epoch, buckets FROM sales WHERE id = ? FOR UPDATE',
      [saleId],
    );
    if (before === undefined || (scatter !== undefined && before.buckets !== scatter.from)) return null;
    const buckets = scatter?.to ?? before.buckets;
    const sql = 'UPDATE sales SET epoch = GREATEST(epoch + 1, ?), buckets = ? WHERE id = ?';
    await tx.execute(sql, [atLeast, buckets, saleId]);
    const raised = await findSale(tx, saleId);
    const epochs = { before: { epoch: before.epoch }, after: { epoch: raised?.epoch } };
    const scattered = { before, after: { epoch: raised?.epoch, buckets } };
    const [action, change] = scatter ? ['sale.scattered', scattered] : ['sale.repaired', epochs];
    await insertAudit(tx, { actor, action, subject: `sale:${saleId}`, ...change });
    return raised;
  });
}

/** Letters of deadlines and events name the sale too; what is no batch of it holds no units. */
async function parkedBatchesOf(pool: MysqlPool, saleId: string): Promise<Batch[]> {
  const batches = new Map<string, Batch>();
  for (let last = '0'; ;) {
    const letters = await pool.query<{ readonly id: string; readonly body: string }>(
      "SELECT id, body FROM dead_letters WHERE state = 'parked' AND sale_id = ? AND id > CAST(? AS UNSIGNED)" +
        ' ORDER BY id LIMIT ?',
      [saleId, last, LETTERS_PER_PAGE],
    );
    for (const { body } of letters) {
      const decoded = decodeBatch(body);
      if (decoded.outcome !== 'decoded' || decoded.batch.saleId !== saleId) continue;
      batches.set(decoded.batch.batchId, decoded.batch);
    }
    const next = letters.at(-1)?.id;
    if (next === undefined || letters.length < LETTERS_PER_PAGE) return [...batches.values()];
    last = next;
  }
}
