import { isLive } from '../core/order.js';
import type { PurchaseOutcome } from '../core/outcome.js';
import type { Purchase } from '../core/purchase.js';
import type { Sale } from '../core/sale.js';
import type { StockStore } from '../core/ports/stock-store.js';
import type { ClosedRows } from './closed-rows.js';

export interface ClosedSalePorts {
  readonly closedRows: Pick<ClosedRows, 'find'>;
  readonly store: Pick<StockStore, 'askForRepair'>;
}

/**
 * The answer to a purchase in a closed sale. While Redis has the sale it knows the answer. Where it may have lost it, a
 * repeated key is answered from its row; without a row its units may be held, so the sale is rebuilt first. Redis has
 * nothing of a retired sale, and every purchase that was let in there has its row: any other one comes too late.
 * @param ask asks Redis
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
