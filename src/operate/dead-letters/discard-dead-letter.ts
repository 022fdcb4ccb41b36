import { decodeBatch } from '../../core/batch.js';
import type { BatchStore } from '../../core/ports/batch-store.js';
import { purchaseKey } from '../../core/purchase.js';
import { failPurchases, type FailedPurchases, type FailPorts } from '../../orders/fail-purchases.js';
import { closeDeadLetter, type DeadLetterStore, type NotParked } from './dead-letter-store.js';

export interface DiscardPorts extends FailPorts {
  readonly deadLetters: Pick<DeadLetterStore, 'find' | 'close'>;
  readonly store: Pick<BatchStore, 'markRecorded' | 'heldElsewhere'>;
}

/**
 * - `discarded`: every purchase of the batch now has a row; the new rows are `failed`, and their units are on their way
 *   back
 * - `contended`: other processes are writing the same rows, or no order ids are available; nothing was changed, so try
 *   again
 * - `already_closed`: the dead letter was replayed or discarded before
 */
export type DiscardAnswer =
  | { readonly outcome: 'discarded'; readonly note: string }
  | { readonly outcome: 'contended' }
  | NotParked;

const NOTHING: FailedPurchases = { failed: 0, kept: 0, live: [] };

/**
 * Discards a parked batch: each purchase without a row gets a `failed/discarded` row, with the outbox row of its
 * release in the same transaction (protocol rule 7). A purchase that has a row keeps it. A purchase that another batch
 * now holds is left to that batch, because its buyer also has a 202. A worker may record the batch at the same moment:
 * the unique key of the row decides for each purchase. Rows are written even if Redis has no units for the batch,
 * because the message was committed, so a buyer may have got a 202 and must be able to see the result. Safe to repeat.
 * @throws OperationalError; the dead letter is still `parked` and may be discarded again
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
    (await closeDeadLetter(deadLetterId, 'discarded', note, deadLetters, actor)) ?? {
      outcome: 'discarded',
      note,
    };
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
  // Takes the batch out of `pending`, where an unfinished replay may have put it. Live rows that already existed keep
  // their units.
  await ports.store.markRecorded([{ batch, orders: written.live }]);
  const left = elsewhere.size === 0 ? '' : `, ${elsewhere.size} held by another batch`;
  return close(`${written.failed} failed, ${written.kept} already had a row${left}`);
}
