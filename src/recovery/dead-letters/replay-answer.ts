import type { DeadLetterRepository, DeadLetterState } from '../../core/ports/dead-letter-repository.js';

export interface ReplayOptions {
  /** Who asked for it; stands in the audit log. */
  readonly actor: string;
  /** How long what was published is followed, ms. */
  readonly waitMs: number;
  /** Ends the wait early; the letter can be replayed again. */
  readonly signal?: AbortSignal;
}

/**
 * - `replayed`: published, and a batch has a row for each purchase, a deadline has ended what was due, paid orders have
 *   their coupons; a letter of news was only published, since nothing shows what came of it
 * - `already_recorded`: every purchase had its row before; the letter is `replayed`, nothing was published
 * - `unfinished`: published, but not worked on within the wait; the letter stays `parked` and may be replayed again
 * - `unreadable`: nobody can read the body, so nobody could work on it; the letter stays `parked`
 * - `not_held`: the ledger holds no units for the batch, so it may not become orders; the letter stays `parked`
 * - `already_closed`: the letter was replayed or discarded before
 */
export type ReplayAnswer =
  | {
      readonly outcome: 'replayed' | 'already_recorded' | 'unfinished' | 'unreadable' | 'not_held';
      readonly note: string;
    }
  | { readonly outcome: 'already_closed'; readonly state: DeadLetterState }
  | { readonly outcome: 'not_found' };

/** The letter has come to its end: says so in the book. */
export async function closeReplayed(
  deadLetterId: string,
  outcome: 'replayed' | 'already_recorded',
  note: string,
  deadLetters: Pick<DeadLetterRepository, 'find' | 'close'>,
  actor: string,
): Promise<ReplayAnswer> {
  const moved = await deadLetters.close(deadLetterId, actor, 'replayed', note);
  if (moved === 'done') return { outcome, note };
  const now = await deadLetters.find(deadLetterId); // somebody else was faster
  return now === null ? { outcome: 'not_found' } : { outcome: 'already_closed', state: now.state };
}
