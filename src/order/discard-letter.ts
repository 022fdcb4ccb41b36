import { decodeBatch, type Batch } from '../domain/batch.js';
import type { Order } from '../domain/order.js';
import type { Clock } from '../ports/clock.js';
import type { DeadLetterBook, DeadLetterState } from '../ports/dead-letters.js';
import type { NewOrder, OrderBook, SaleTerms, WritePlan } from '../ports/order-book.js';
import type { SettlementLedger } from '../ports/settlement-ledger.js';
import { draftRows, requestName } from './draft-rows.js';
import type { OrderIdMinter } from './order-id-minter.js';

export interface DiscardPorts {
  readonly letters: Pick<DeadLetterBook, 'find' | 'close'>;
  readonly ledger: Pick<SettlementLedger, 'settle'>;
  readonly book: Pick<OrderBook, 'termsOf' | 'findByPurchases' | 'write'>;
  readonly minter: Pick<OrderIdMinter, 'renew' | 'mint'>;
  readonly clock: Clock;
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

const ATTEMPTS_MAX = 8;
const AGAIN_MS = 5;
const NO_IDS_WAIT_MAX_MS = 250;

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
  const terms = await ports.book.termsOf([batch.saleId]);
  if (!terms.has(batch.saleId)) return close(`there is no sale ${batch.saleId}: no rows were written`);

  const written = await writeFailedRows(batch, terms, ports);
  if (written === 'contended') return { outcome: written };
  return close(`${written.failed} failed, ${written.kept} had a row before`);
}

async function writeFailedRows(
  batch: Batch,
  terms: ReadonlyMap<string, SaleTerms>,
  { book, minter, ledger, clock }: DiscardPorts,
): Promise<{ readonly failed: number; readonly kept: number } | 'contended'> {
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
    const known = await book.findByPurchases(batch.saleId, batch.purchases);
    const rows = new Map(known.map((row): [string, Order] => [requestName(batch.saleId, row), row]));
    const draft = draftRows([batch], terms, { rows, liveBuyers: new Set() });
    if (draft.rows.length > 0 || draft.releases.length > 0) {
      await minter.renew(); // discards are rare: nobody keeps a lease for them
      const minted = minter.mint(draft.rows.map(({ purchase }) => purchase.userId));
      if (minted.outcome === 'refused') {
        await clock.sleep(Math.min(minted.waitMs, NO_IDS_WAIT_MAX_MS));
        continue;
      }
      const orders = draft.rows.map(({ purchase }, index): NewOrder => {
        return { orderId: minted.orderIds[index] as string, batch, purchase, failure: 'discarded' };
      });
      const { outcome } = await book.write(planOf(orders, draft.releases, terms));
      if (outcome !== 'written') {
        if (outcome === 'again') await clock.sleep(Math.ceil(AGAIN_MS * attempt * (0.5 + Math.random())));
        continue;
      }
    }
    // Out of `pending`, where an unfinished replay may have put it; live rows found before keep their units.
    await ledger.settle([{ batch, orders: draft.found.get(batch) ?? [] }]);
    return { failed: draft.rows.length, kept: known.length };
  }
  return 'contended';
}

const planOf = (
  orders: readonly NewOrder[],
  releases: WritePlan['releases'],
  terms: WritePlan['terms'],
): WritePlan => ({
  ...{ terms, orders, releases, oneByOne: new Set<string>() },
  paymentWindowMs: 0, // nobody is asked to pay
});
