import type { Batch } from '../core/batch.js';
import { assertNever, OperationalError } from '../core/errors.js';
import { purchaseKey } from '../core/purchase.js';
import type { OrderRepository, SaleTerms } from '../core/ports/order-repository.js';
import type { Reacquired, BatchStore } from '../core/ports/batch-store.js';
import { isOfOlderEpoch, lookUpRows, requestName, type Known } from './draft-rows.js';
import type { RetryReason } from './metrics.js';

export interface ReacquirePorts {
  readonly repository: Pick<OrderRepository, 'findByPurchases'>;
  readonly store: Pick<BatchStore, 'reacquire'>;
}

export interface ReacquiredBatches {
  /** What was looked up, with the purchases whose units are lost. */
  readonly known: Known;
  /** Batches that may not be written now, and why. */
  readonly kept: ReadonlyMap<Batch, RetryReason>;
}

/**
 * Whose live order stands in the way is left to the unique key: what was looked up before a claim may have ended since,
 * and the claim was told so.
 */
const NOBODY: Known['liveBuyers'] = new Set();

/**
 * Takes units in the present epoch for what late batches have no row for (protocol rule 11). Safe to repeat: what a
 * batch holds it does not take again. A ledger that cannot answer is no fault of the batch, and no outage of MySQL: it
 * waits as it does for a repair.
 * @param batches of sales that exist; those that are not late are looked up and left alone
 * @throws OperationalError mysql
 */
export async function reacquireUnits(
  batches: readonly Batch[],
  terms: ReadonlyMap<string, SaleTerms>,
  { repository, store }: ReacquirePorts,
): Promise<ReacquiredBatches> {
  const rows = await lookUpRows(batches, repository);
  const [lost, elsewhere] = [new Set<string>(), new Set<string>()];
  const kept = new Map<Batch, RetryReason>();
  for (const batch of batches) {
    const { saleId, purchases } = batch;
    const recorded = purchases.filter((purchase) => rows.has(requestName(saleId, purchase))).map(purchaseKey);
    if (!isOfOlderEpoch(batch, terms) || recorded.length === purchases.length) continue;
    const said = await claim(batch, terms.get(saleId)?.epoch ?? 0, new Set(recorded), store);
    if (typeof said === 'string') {
      kept.set(batch, said);
      continue;
    }
    for (const key of said.lost) lost.add(`${saleId}/${key}`);
    for (const key of said.elsewhere) elsewhere.add(`${saleId}/${key}`);
  }
  return { known: { rows, liveBuyers: NOBODY, lost, elsewhere }, kept };
}

/** @returns what it could not hold, or why the batch has to wait */
async function claim(
  batch: Batch,
  epoch: number,
  recorded: ReadonlySet<string>,
  store: ReacquirePorts['store'],
): Promise<Extract<Reacquired, { outcome: 'claimed' }> | RetryReason> {
  try {
    const said = await store.reacquire(batch, epoch, recorded);
    switch (said.outcome) {
      case 'claimed':
        return said;
      case 'unavailable':
        return 'repairing';
      case 'not_warmed':
        return 'not_warmed';
      default:
        return assertNever(said);
    }
  } catch (error) {
    if (!(error instanceof OperationalError) || !error.retryable) throw error;
    return 'repairing';
  }
}
