import type { Batch } from '../core/batch.js';
import { assertNever, OperationalError } from '../core/errors.js';
import { purchaseKey, requestName } from '../core/purchase.js';
import type { OrderRepository, SaleTerms } from '../core/ports/order-repository.js';
import type { Reacquired, BatchStore } from '../core/ports/batch-store.js';
import { isOfOlderEpoch, lookUpRows, type Known } from './draft-rows.js';
import type { RetryReason } from './metrics.js';

/** Live buyers are not looked up: their order may end before `reacquire` answers. The unique key alone decides. */
const NO_LIVE_BUYERS: Known['liveBuyers'] = new Set();

/**
 * Takes units in the current epoch for purchases of older batches without a row (protocol rule 13). Safe to repeat: a
 * batch never takes units that it already holds. If Redis cannot answer, the batch waits as for a repair.
 * @param batches of existing sales; batches of the current epoch are looked up and left alone
 * @returns `known`: what was found, and the purchases whose units are lost; `postponed`: batches not to be written yet,
 * and why
 * @throws OperationalError mysql
 */
export async function reacquireUnits(
  batches: readonly Batch[],
  terms: ReadonlyMap<string, SaleTerms>,
  {
    repository,
    store,
  }: {
    readonly repository: OrderRepository;
    readonly store: BatchStore;
  },
): Promise<{ readonly known: Known; readonly postponed: ReadonlyMap<Batch, RetryReason> }> {
  const rows = await lookUpRows(batches, repository);
  const lost = new Set<string>();
  const elsewhere = new Set<string>();
  const postponed = new Map<Batch, RetryReason>();
  for (const batch of batches) {
    const { saleId, purchases } = batch;
    const recorded = purchases.filter((purchase) => rows.has(requestName(saleId, purchase))).map(purchaseKey);
    if (!isOfOlderEpoch(batch, terms) || recorded.length === purchases.length) continue;
    if (terms.get(saleId)?.retired === true) {
      // Redis has forgotten the sale, which held no units when it was retired.
      for (const purchase of purchases) lost.add(requestName(saleId, purchase));
      continue;
    }
    const answer = await reacquire(batch, terms.get(saleId)?.epoch ?? 0, new Set(recorded), store);
    if (typeof answer === 'string') {
      postponed.set(batch, answer);
      continue;
    }
    for (const key of answer.lost) lost.add(`${saleId}/${key}`);
    for (const key of answer.elsewhere) elsewhere.add(`${saleId}/${key}`);
  }
  return { known: { rows, liveBuyers: NO_LIVE_BUYERS, lost, elsewhere }, postponed };
}

/** @returns purchases that got no units, or why the batch has to wait */
async function reacquire(
  batch: Batch,
  epoch: number,
  recorded: ReadonlySet<string>,
  store: BatchStore,
): Promise<Extract<Reacquired, { outcome: 'claimed' }> | RetryReason> {
  try {
    const answer = await store.reacquire(batch, epoch, recorded);
    switch (answer.outcome) {
      case 'claimed':
        return answer;
      case 'unavailable':
        return 'repairing';
      case 'not_warmed':
        return 'not_warmed';
      default:
        return assertNever(answer);
    }
  } catch (error) {
    if (!(error instanceof OperationalError) || !error.retryable) throw error;
    return 'repairing';
  }
}
