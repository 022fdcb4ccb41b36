import { userInfo } from 'node:os';
import { InvalidArgumentError, Option, type Command } from 'commander';
import { isId, isSaleId } from '../core/ids.js';
import { GROUPS } from '../core/topics.js';
import {
  DEAD_LETTER_REASONS,
  type DeadLetterFilter,
  type DeadLetterReason,
} from '../core/ports/dead-letter-repository.js';
import { parseTime, parseWhole } from './options.js';

export interface FilterFlags {
  readonly group?: string;
  readonly since?: number;
  readonly until?: number;
  readonly sale?: string;
  readonly key?: string;
  readonly reason?: DeadLetterReason;
  readonly limit: number;
}

const DEAD_LETTERS_MAX = 10_000_000;
const DEAD_LETTER_ID = /^[1-9][0-9]{0,17}$/;

/** The conditions that every `dlq` command takes; all of those given must hold. */
export function addFilters(command: Command, limit = DEAD_LETTERS_MAX): Command {
  return command
    .addOption(new Option('--group <group>', 'consumer group that gave up').choices(Object.values(GROUPS)))
    .option('--since <time>', 'parked at this time or later: ISO 8601, or -2h for two hours ago', parseTime)
    .option('--until <time>', 'parked before this time', parseTime)
    .option('--sale <saleId>', 'of this sale', parseSaleId)
    .option('--key <id>', 'batch id, or request id (Idempotency-Key) of one of its purchases', parseKey)
    .addOption(new Option('--reason <reason>', 'why it was parked').choices(DEAD_LETTER_REASONS))
    .option('--limit <count>', 'at most so many, oldest first', parseWhole(1, DEAD_LETTERS_MAX), limit);
}

export function filterOf({ group, since, until, sale, key, reason }: FilterFlags): DeadLetterFilter {
  return {
    ...(group === undefined ? {} : { group }),
    ...(since === undefined ? {} : { sinceMs: since }),
    ...(until === undefined ? {} : { untilMs: until }),
    ...(sale === undefined ? {} : { saleId: sale }),
    ...(key === undefined ? {} : { key }),
    ...(reason === undefined ? {} : { reason }),
  };
}

export function parseDeadLetterId(text: string): string {
  if (!DEAD_LETTER_ID.test(text))
    throw new InvalidArgumentError('must be the number of a letter, as `dlq list` shows it.');
  return text;
}

/** For a list of arguments: commander hands over what it has read so far. */
export const parseDeadLetterIds = (text: string, before: readonly string[] = []): readonly string[] => [
  ...before,
  parseDeadLetterId(text),
];

function parseSaleId(text: string): string {
  if (!isSaleId(text)) throw new InvalidArgumentError('must be a whole number.');
  return text;
}

function parseKey(text: string): string {
  if (!isId(text)) throw new InvalidArgumentError('must be an id: letters, digits, _ and -, up to 64.');
  return text;
}

/** Who is at the keyboard, for the audit log. */
export function operatorName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`; // a container whose user has no name
  }
}
