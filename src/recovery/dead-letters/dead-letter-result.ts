import { assertNever } from '../../core/errors.js';
import type { DeadLetterResult } from './dead-letter-admin.js';

/** The result of one dead letter in a bulk run, for a list. */
export interface ReadResult {
  readonly word: string;
  /** A note for the operator, or null if the word says enough. */
  readonly note: string | null;
  /** Whether the dead letter reached the state that was asked for. */
  readonly isEnd: boolean;
}

/** @param end the state that was asked for */
export function readResult(result: DeadLetterResult, end: 'replayed' | 'discarded'): ReadResult {
  if ('fault' in result) return { word: 'fault', note: result.fault.message, isEnd: false };
  const { answer } = result;
  switch (answer.outcome) {
    case 'replayed':
    case 'already_recorded':
    case 'discarded':
      return { word: answer.outcome, note: answer.note, isEnd: true };
    case 'unfinished':
    case 'unreadable':
    case 'not_held':
    case 'forged':
      return { word: answer.outcome, note: answer.note, isEnd: false };
    case 'already_closed':
      return { word: answer.outcome, note: `it is ${answer.state}`, isEnd: answer.state === end };
    case 'contended':
      return { word: answer.outcome, note: 'another transaction writes the same rows; try again', isEnd: false };
    case 'not_found':
      return { word: answer.outcome, note: null, isEnd: false };
    default:
      return assertNever(answer);
  }
}
