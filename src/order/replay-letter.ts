import { decodeBatch, type Batch } from '../domain/batch.js';
import { assertNever } from '../domain/errors.js';
import { isLive, type Order } from '../domain/order.js';
import type { Clock } from '../ports/clock.js';
import type { DeadLetterBook, DeadLetterState } from '../ports/dead-letters.js';
import type { OrderBook } from '../ports/order-book.js';
import type { RedriveChannel } from '../ports/purchase-channel.js';
import type { SettlementLedger } from '../ports/settlement-ledger.js';

export interface ReplayPorts {
  readonly letters: Pick<DeadLetterBook, 'find' | 'beginReplay' | 'close' | 'keepParked'>;
  readonly ledger: Pick<SettlementLedger, 'unpark' | 'settle'>;
  readonly book: Pick<OrderBook, 'findByPurchases'>;
  readonly channel: RedriveChannel;
  readonly clock: Clock;
}

export interface ReplayOptions {
  /** Who asked for it; stands in the audit log. */
  readonly actor: string;
  /** How long a published batch is followed, ms. */
  readonly waitMs: number;
  /** Ends the wait early; the letter can be replayed again. */
  readonly signal?: AbortSignal;
}

/**
 * - `replayed`: published, and every purchase of the batch has its row
 * - `already_recorded`: every purchase had its row before; the letter is `replayed`, nothing was published
 * - `unfinished`: published, but not recorded within the wait; the letter stays `parked` and may be replayed again
 * - `not_a_batch`: the body says nothing that could become orders; the letter stays `parked`
 * - `not_held`: the ledger holds no units for the batch, so it may not become orders; the letter stays `parked`
 * - `already_closed`: the letter was replayed or discarded before
 */
export type ReplayAnswer =
  | {
      readonly outcome: 'replayed' | 'already_recorded' | 'unfinished' | 'not_a_batch' | 'not_held';
      readonly note: string;
    }
  | { readonly outcome: 'already_closed'; readonly state: DeadLetterState }
  | { readonly outcome: 'not_found' };

/** A worker records within milliseconds; a busy one is asked less and less often. */
const LOOK_FIRST_MS = 25;
const LOOK_MAX_MS = 500;

/**
 * Sends one parked batch to the workers again and follows it to its rows. Safe to repeat after a death at any point:
 * the batch is in `pending` before it is published (protocol rule 8), so it can't get lost, and rows that are there are
 * found before anything is published.
 * @throws OperationalError; the letter is still `parked` and may be replayed again
 */
export async function replayLetter(
  letterId: string,
  ports: ReplayPorts,
  options: ReplayOptions,
): Promise<ReplayAnswer> {
  const letter = await ports.letters.find(letterId);
  if (letter === null) return { outcome: 'not_found' };
  if (letter.state !== 'parked') return { outcome: 'already_closed', state: letter.state };
  const kept = async (outcome: 'not_a_batch' | 'not_held' | 'unfinished', note: string): Promise<ReplayAnswer> => {
    await ports.letters.keepParked(letterId, options.actor, note);
    return { outcome, note };
  };
  const decoded = decodeBatch(letter.body);
  if (decoded.outcome !== 'decoded') return kept('not_a_batch', `no batch, cannot be replayed: ${decoded.detail}`);
  const { batch } = decoded;

  const before = await rowsOf(batch, ports);
  if (before !== null && before.every((row) => row.batchId === batch.batchId)) {
    return closed(letterId, batch, before, 'already_recorded', ports, options);
  }
  await ports.letters.beginReplay(letterId, options.actor);
  const word = await ports.ledger.unpark(batch);
  switch (word) {
    case 'unparked':
    case 'already_pending':
      await ports.channel.publish(batch);
      break;
    case 'settled':
    case 'aborted':
    case 'unknown':
      if (before !== null) return closed(letterId, batch, before, 'already_recorded', ports, options);
      return kept('not_held', `its units are not held (${word}), cannot be replayed`);
    default:
      return assertNever(word);
  }
  const rows = await followed(batch, ports, options);
  if (rows !== null) return closed(letterId, batch, rows, 'replayed', ports, options);
  return kept('unfinished', `published again, not every purchase has its row yet`);
}

/** The rows of the batch; null while a purchase has none. */
async function rowsOf(batch: Batch, { book }: ReplayPorts): Promise<Order[] | null> {
  const rows = await book.findByPurchases(batch.saleId, batch.purchases);
  return rows.length === batch.purchases.length ? rows : null;
}

async function followed(batch: Batch, ports: ReplayPorts, { waitMs, signal }: ReplayOptions): Promise<Order[] | null> {
  const { clock } = ports;
  const deadlineMs = clock.nowMs() + waitMs;
  let pauseMs = LOOK_FIRST_MS;
  for (;;) {
    const rows = await rowsOf(batch, ports);
    if (rows !== null || clock.nowMs() >= deadlineMs || signal?.aborted === true) return rows;
    await clock.sleep(Math.min(pauseMs, deadlineMs - clock.nowMs()), signal);
    pauseMs = Math.min(pauseMs * 2, LOOK_MAX_MS);
  }
}

/** The ledger is told as well where a worker may not have done it: then the batch is in no list that a keeper reads. */
async function closed(
  letterId: string,
  batch: Batch,
  rows: readonly Order[],
  outcome: 'replayed' | 'already_recorded',
  { letters, ledger }: ReplayPorts,
  { actor }: ReplayOptions,
): Promise<ReplayAnswer> {
  const live = rows.filter((row) => isLive(row.state));
  if (outcome === 'already_recorded') await ledger.settle([{ batch, orders: live }]);
  const when = outcome === 'replayed' ? 'recorded' : 'had been recorded before';
  const note = `${when}: ${live.length} live, ${rows.length - live.length} ended`;
  const moved = await letters.close(letterId, actor, 'replayed', note);
  if (moved === 'done') return { outcome, note };
  const now = await letters.find(letterId); // somebody else was faster
  return now === null ? { outcome: 'not_found' } : { outcome: 'already_closed', state: now.state };
}
