import type { DeadLetter, DeadLetterBook } from '../ports/dead-letters.js';
import { MysqlError } from './errors.js';
import type { MysqlPool } from './pool.js';

const NAME_MAX = 128;
const DETAIL_MAX = 1000;
/** The broker takes at most 4 MiB; of a body beyond this only the start is of use to a person. */
const BODY_MAX = 4 * 1024 * 1024;

/** The record of dead letters, in MySQL. */
export function createDeadLetterBook(pool: MysqlPool): DeadLetterBook {
  return { park: (letter) => park(pool, letter) };
}

/** Everything is cut to its column: a letter that does not fit would come back for ever. */
async function park(pool: MysqlPool, letter: DeadLetter): Promise<'parked' | 'already_parked'> {
  const cut = (text: string, max = NAME_MAX): string => text.slice(0, max);
  try {
    await pool.execute(
      'INSERT INTO dead_letters' +
        ' (message_id, consumer_group, origin_topic, sale_id, batch_id, body, reason, detail, attempts)' +
        ' VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)',
      [
        cut(letter.messageId),
        cut(letter.group),
        cut(letter.originTopic),
        letter.saleId === null ? null : cut(letter.saleId),
        letter.batchId === null ? null : cut(letter.batchId),
        cut(letter.body, BODY_MAX),
        letter.reason,
        cut(letter.detail, DETAIL_MAX),
        letter.attempts,
      ],
    );
    return 'parked';
  } catch (error) {
    if (error instanceof MysqlError && error.kind === 'duplicate') return 'already_parked';
    throw error;
  }
}
