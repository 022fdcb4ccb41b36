import type { StoreAnswer } from '../../../src/core/outcome.js';
import { type Purchase, purchaseKey } from '../../../src/core/purchase.js';
import type { LoadedSale, MemoryBucket } from './memory-bucket.js';

export type Shut = 'loading' | 'paused' | 'closed' | 'not_open';

/** Why nobody may buy now; null in an open sale inside its window. */
export function shutBy(sale: LoadedSale, nowMs: number): Shut | null {
  if (sale.state === 'paused') return 'paused';
  if (sale.state === 'closed' || nowMs >= sale.closesAtMs) return 'closed';
  return sale.state === 'open' && nowMs >= sale.opensAtMs ? null : 'not_open';
}

/** Who may buy: one answer per purchase, null for a yes, and the units that remain if all who may do. */
export function judge(
  bucket: MemoryBucket,
  purchases: readonly Purchase[],
  { shut, refuseTwins }: { shut: Shut | null; refuseTwins: boolean },
): { answers: (StoreAnswer | null)[]; unitsLeft: number } {
  const bought = bucket.unitsByBuyer();
  const letIn = new Set<string>();
  let { unitsLeft } = bucket;
  const answerOf = (purchase: Purchase): StoreAnswer | null => {
    if (shut === 'loading') return { outcome: shut }; // what stands there may be old news
    const entry = bucket.requests.get(purchaseKey(purchase));
    if (entry?.quantity === purchase.quantity) return { outcome: 'replayed', entry };
    if (entry || (refuseTwins && letIn.has(purchaseKey(purchase)))) return { outcome: 'request_conflict' };
    if (shut) return { outcome: shut };
    const total = (bought.get(purchase.userId) ?? 0) + purchase.quantity;
    if (total > (bucket.sale?.limitPerBuyer ?? 0)) return { outcome: 'limit_reached' };
    if (purchase.quantity > unitsLeft) return { outcome: 'sold_out' };
    bought.set(purchase.userId, total);
    letIn.add(purchaseKey(purchase));
    unitsLeft -= purchase.quantity;
    return null;
  };
  const answers = purchases.map(answerOf);
  return { answers, unitsLeft };
}
