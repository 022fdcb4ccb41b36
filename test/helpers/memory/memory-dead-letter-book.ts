import type { DeadLetter, DeadLetterBook } from '../../../src/ports/dead-letters.js';

/** Dead letters in memory. */
export class MemoryDeadLetterBook implements DeadLetterBook {
  readonly letters: DeadLetter[] = [];

  async park(letter: DeadLetter): Promise<'parked' | 'already_parked'> {
    const same = this.letters.some(({ messageId, group }) => messageId === letter.messageId && group === letter.group);
    if (same) return 'already_parked';
    this.letters.push(letter);
    return 'parked';
  }
}
