import { isLive } from '../core/order.js';
import type { PurchaseOutcome } from '../core/outcome.js';
import type { Purchase } from '../core/purchase.js';
import type { Sale } from '../core/sale.js';
import type { StockStore } from '../core/ports/stock-store.js';
import type { ClosedRows } from './closed-rows.js';

export interface ClosedSalePorts {
  readonly closedRows: ClosedRows;
  readonly store: StockStore;
}

/**
 * Answers a purchase in a closed sale. Redis answers while it has the sale. If Redis may have lost the sale, a repeated
 * key is answered from its row. A purchase without a row may still hold units, so the sale is rebuilt first. A retired
 * sale is not in Redis, but every accepted purchase of it has its row, so any other purchase is too late.
 * @param ask gets the answer from Redis
 * @throws OperationalError mysql
 */
export async function answerClosed(
  { saleId, retiredAtMs }: Sale,
  purchase: Purchase,
  ask: () => Promise<PurchaseOutcome>,
  { closedRows, store }: ClosedSalePorts,
): Promise<PurchaseOutcome> {
  if (retiredAtMs === null) {
    const answer = await ask();
    if (answer.outcome !== 'loading') return answer;
  }
  const row = await closedRows.find(saleId, purchase);
  if (row === 'overloaded') return { outcome: row };
  if (row !== null) {
    const { orderId, quantity } = row;
    if (quantity !== purchase.quantity) return { outcome: 'request_conflict' };
    return { outcome: 'replayed', entry: { state: isLive(row.state) ? 'ordered' : 'released', orderId, quantity } };
  }
  if (retiredAtMs !== null) return { outcome: 'closed' };
  await store.askForRepair(saleId);
  return { outcome: 'loading' };
}
