import { decodeBatch } from '../../core/batch.js';
import type { BatchStore } from '../../core/ports/batch-store.js';
import { purchaseKey } from '../../core/purchase.js';
import { failPurchases, type FailedPurchases, type FailPorts } from '../../orders/fail-purchases.js';
import { closeDeadLetter, type DeadLetterStore, type NotParked } from './dead-letter-store.js';

export interface DiscardPorts extends FailPorts {
  readonly deadLetters: DeadLetterStore;
  readonly store: BatchStore;
}

/** `contended`: others write the same rows, or no order ids are available; nothing changed, so try again. */
export type DiscardAnswer =
  | { readonly outcome: 'discarded'; readonly note: string }
  | { readonly outcome: 'contended' }
  | NotParked;

const NOTHING: FailedPurchases = { failed: 0, kept: 0, live: [] };

/**
 * Writes a `failed/discarded` row, with its release in the outbox, for each purchase without a row (protocol rule 7).
 * Skips purchases that another batch now holds, because their buyers also have a 202. If a worker records the batch at
 * the same moment, the unique key decides per purchase. Writes rows even without units in Redis, because a buyer may
 * have got a 202 and must see the result. Safe to repeat.
 * @throws OperationalError; the dead letter is still `parked`
 */
export async function discardDeadLetter(
  deadLetterId: string,
  ports: DiscardPorts,
  { actor }: { readonly actor: string },
): Promise<DiscardAnswer> {
  const { deadLetters } = ports;
  const deadLetter = await deadLetters.find(deadLetterId);
  if (deadLetter === null) return { outcome: 'not_found' };
  if (deadLetter.state !== 'parked') return { outcome: 'already_closed', state: deadLetter.state };
  const close = async (note: string): Promise<DiscardAnswer> =>
    (await closeDeadLetter(deadLetterId, 'discarded', note, deadLetters, actor)) ?? { outcome: 'discarded', note };
  // A forged batch may name purchases of real buyers, which must not be ended.
  if (deadLetter.reason === 'forged') return close('forged, so it holds no units to return');
  const decoded = decodeBatch(deadLetter.body);
  if (decoded.outcome !== 'decoded') return close('not a batch, so it holds no units to return');
  const { batch } = decoded;
  const elsewhere = await ports.store.heldElsewhere(batch);
  const purchases = batch.purchases.filter((purchase) => !elsewhere.has(purchaseKey(purchase)));
  const written = purchases.length === 0 ? NOTHING : await failPurchases({ ...batch, purchases }, 'discarded', ports);
  if (written === 'contended') return { outcome: written };
  if (written === 'unknown_sale') return close(`there is no sale ${batch.saleId}: no rows were written`);
  // An unfinished replay may have put the batch into `pending`. Existing live rows keep their units.
  await ports.store.markRecorded([{ batch, orders: written.live }]);
  const left = elsewhere.size === 0 ? '' : `, ${elsewhere.size} held by another batch`;
  return close(`${written.failed} failed, ${written.kept} already had a row${left}`);
}
