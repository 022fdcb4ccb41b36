import type { Batch } from '../core/batch.js';
import type { FailureReason } from '../core/order.js';
import type { Clock } from '../core/ports/clock.js';
import type { NewOrder, OrderRepository, WritePlan } from '../core/ports/order-repository.js';
import type { LiveOrder } from '../core/ports/batch-store.js';
import { draftRows, lookUpRows } from './draft-rows.js';
import type { OrderIdMinter } from './order-id-minter.js';
import { ATTEMPTS_MAX, contendedPauseMs, noIdsPauseMs, ordersOf } from './write-attempts.js';

export interface FailPorts {
  readonly repository: OrderRepository;
  readonly minter: OrderIdMinter;
  readonly clock: Clock;
}

export interface FailedPurchases {
  /** Number of rows written. */
  readonly failed: number;
  /** Number of purchases that already had a row. */
  readonly kept: number;
  /** The live orders of the purchases that already had a row. */
  readonly live: readonly LiveOrder[];
}

/**
 * Gives up purchases: each purchase without a row gets a `failed` row, with the outbox row of its release in the same
 * transaction (protocol rule 7). A worker may record the batch at the same moment: the unique key of the row decides.
 * Safe to repeat.
 * @returns `contended` if other processes keep writing the same rows or no order ids are available; nothing was written
 * @throws OperationalError mysql; the rows may exist, so call again
 */
export async function failPurchases(
  batch: Batch,
  reason: FailureReason,
  { repository, minter, clock }: FailPorts,
): Promise<FailedPurchases | 'contended' | 'unknown_sale'> {
  const terms = await repository.termsOf([batch.saleId]);
  if (!terms.has(batch.saleId)) return 'unknown_sale';
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
    const rows = await lookUpRows([batch], repository);
    const draft = draftRows([batch], terms, { rows, liveBuyers: new Set() });
    if (draft.rows.length > 0 || draft.releases.length > 0) {
      await minter.renew(); // rare, so no lease is kept for this
      const minted = minter.mint(draft.rows.map(({ purchase }) => purchase.userId));
      if (minted.outcome === 'refused') {
        await clock.sleep(noIdsPauseMs(minted.waitMs));
        continue;
      }
      const orders = ordersOf(draft, minted.orderIds).map((order) => ({ ...order, failure: reason }));
      const { outcome } = await repository.write(planOf(orders, draft.releases, terms));
      if (outcome !== 'written') {
        if (outcome === 'again') await clock.sleep(contendedPauseMs(attempt));
        continue;
      }
    }
    return { failed: draft.rows.length, kept: rows.size, live: draft.found.get(batch) ?? [] };
  }
  return 'contended';
}

const planOf = (
  orders: readonly NewOrder[],
  releases: WritePlan['releases'],
  terms: WritePlan['terms'],
): WritePlan => ({
  terms,
  orders,
  releases,
  oneByOne: new Set<string>(),
  singleOut: true, // `write` throws if MySQL refuses even a failed row
  paymentWindowMs: 0, // a failed row is never paid
});
