import type { DeadLetterRepository, DeadLetterState } from '../../core/ports/dead-letters.js';

/** Why a dead letter cannot be closed: it was closed before, or it does not exist. */
export type NotParked =
  | { readonly outcome: 'already_closed'; readonly state: DeadLetterState }
  | { readonly outcome: 'not_found' };

/**
 * Closes a parked dead letter in MySQL.
 * @param actor for the audit log
 * @returns null when done, or the state in which a faster operator has left it
 * @throws OperationalError mysql
 */
export async function closeDeadLetter(
  deadLetterId: string,
  end: 'replayed' | 'discarded',
  note: string,
  deadLetters: Pick<DeadLetterRepository, 'find' | 'close'>,
  actor: string,
): Promise<NotParked | null> {
  if ((await deadLetters.close(deadLetterId, actor, end, note)) === 'done') return null;
  const now = await deadLetters.find(deadLetterId);
  return now === null ? { outcome: 'not_found' } : { outcome: 'already_closed', state: now.state };
}
