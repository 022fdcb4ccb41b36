import { decodeBatch } from '../../core/batch.js';
import type { DeadLetterBook, DeadLetterState } from '../../core/ports/dead-letters.js';
import type { SettlementLedger } from '../../core/ports/settlement-ledger.js';
import { failPurchases, type FailPorts } from '../../orders/fail-purchases.js';

export interface DiscardPorts extends FailPorts {
  readonly letters: Pick<DeadLetterBook, 'find' | 'close'>;
  readonly ledger: Pick<SettlementLedger, 'settle'>;
}

export interface DiscardOptions {
  /** Who asked for it; stands in the audit log. */
  readonly actor: string;
}

/**
 * - `discarded`: every purchase of the batch has a row now; the new ones are `failed`, their units are on their way back
 * - `contended`: others write the same rows, or no order ids can be had; nothing was changed, ask again
 * - `already_closed`: the letter was replayed or discarded before
 */
export type DiscardAnswer =
  | { readonly outcome: 'discarded'; readonly note: string }
  | { readonly outcome: 'contended' }
  | { readonly outcome: 'already_closed'; readonly state: DeadLetterState }
  | { readonly outcome: 'not_found' };

/**
 * Gives a parked batch up: each purchase without a row gets one that is `failed/discarded`, with the promise of its
 * release in the same transaction (protocol rule 7). Whoever has a row keeps it. A worker that records the batch at the
 * same moment is harmless: the unique key of the row decides for each purchase. Rows are written even where the ledger
 * knows of no units: the message was committed, so somebody may have heard 202, and that must not end in silence.
 * Safe to repeat.
 * @throws OperationalError; the letter is still `parked` and may be discarded again
 */
export async function discardLetter(
  letterId: string,
  ports: DiscardPorts,
  options: DiscardOptions,
): Promise<DiscardAnswer> {
  const { letters } = ports;
  const letter = await letters.find(letterId);
  if (letter === null) return { outcome: 'not_found' };
  if (letter.state !== 'parked') return { outcome: 'already_closed', state: letter.state };
  const close = async (note: string): Promise<DiscardAnswer> => {
    const moved = await letters.close(letterId, options.actor, 'discarded', note);
    if (moved === 'done') return { outcome: 'discarded', note };
    const now = await letters.find(letterId); // somebody else was faster
    return now === null ? { outcome: 'not_found' } : { outcome: 'already_closed', state: now.state };
  };
  const decoded = decodeBatch(letter.body);
  if (decoded.outcome !== 'decoded') return close('no batch: there is nothing to give back');
  const { batch } = decoded;
  const written = await failPurchases(batch, 'discarded', ports);
  if (written === 'contended') return { outcome: written };
  if (written === 'unknown_sale') return close(`there is no sale ${batch.saleId}: no rows were written`);
  // Out of `pending`, where an unfinished replay may have put it; live rows found before keep their units.
  await ports.ledger.settle([{ batch, orders: written.live }]);
  return close(`${written.failed} failed, ${written.kept} had a row before`);
}
