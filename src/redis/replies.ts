import { assert, Bug } from '../core/errors.js';
import { parseRequestEntry, type StoreAnswer } from '../core/outcome.js';

/** @throws Bug unless the reply is a flat list of strings and integers */
export function asList(reply: unknown): readonly unknown[] {
  if (!Array.isArray(reply)) throw new Bug(`a script returned ${JSON.stringify(reply)} instead of a list`);
  return reply;
}

const ANSWER_WORDS = [
  'request_conflict',
  'loading',
  'paused',
  'closed',
  'not_open',
  'limit_reached',
  'sold_out',
] as const;

/** Reads triples of `index, word, entry` from `start`, into one slot per purchase. */
export function readAnswers(list: readonly unknown[], start: number, count: number): (StoreAnswer | null)[] {
  const answers = new Array<StoreAnswer | null>(count).fill(null);
  for (let i = start; i < list.length; i += 3) {
    const index = Number(list[i]);
    assert(index in answers, `a script answered purchase ${index} of ${count}`);
    answers[index] = readAnswer(String(list[i + 1]), String(list[i + 2]));
  }
  return answers;
}

function readAnswer(word: string, entry: string): StoreAnswer {
  if (word === 'replayed') {
    const parsed = parseRequestEntry(entry);
    if (parsed === null) throw new Bug(`the request entry ${entry} cannot be read`);
    return { outcome: 'replayed', entry: parsed };
  }
  const known = ANSWER_WORDS.find((candidate) => candidate === word);
  if (known === undefined) throw new Bug(`a script returned the unknown word ${word}`);
  return { outcome: known };
}

/** Null once the batch is recorded. */
export function markerBody(marker: string | null): string | null {
  const start = marker?.indexOf('{') ?? -1;
  return marker === null || start < 0 ? null : marker.slice(start);
}
