import { userInfo } from 'node:os';
import { InvalidArgumentError, Option, type Command } from 'commander';
import { loadConfig } from '../core/config/load.js';
import { isId, isSaleId, isUserId } from '../core/ids.js';
import { readTime, spanReversed } from '../core/time.js';
import { UsageError } from './cli-error.js';

// Options that several commands share, and the parsers of options and arguments. When a parser refuses a value, it says
// what it accepts.

export const clusterOption = (): Option =>
  new Option('--cluster <name>', 'name of the broker cluster').default(
    null,
    'the only cluster, or the cluster with the topics of Seckill',
  );

/**
 * Returns the name servers of the flag, or else the configured ones.
 * @throws UsageError if neither names a server
 */
export function namesrvOf(flag: string | undefined): string {
  const namesrv = flag ?? loadConfig(['repair'], process.env).repair.namesrv;
  if (namesrv === '') throw new UsageError('give --namesrv host:port or set NAMESRV_ADDR, such as 127.0.0.1:9876.');
  return namesrv;
}

/** Adds a command below another one. */
export const subcommand = (parent: Command, name: string, description: string): Command =>
  parent.command(name).description(description);

export const parseWhole =
  (min: number, max: number) =>
  (text: string): number => {
    const value = Number(text);
    if (!/^-?\d+$/.test(text) || !Number.isSafeInteger(value) || value < min || value > max) {
      throw new InvalidArgumentError(`must be a whole number from ${min} to ${max}.`);
    }
    return value;
  };

const LIST_DEFAULT = 50;
const LIST_MAX = 10_000;

/** @param rows what a command lists, such as `refunds` */
export const limitOption = (rows: string): Option =>
  new Option('--limit <count>', `maximum number of ${rows}`).argParser(parseWhole(1, LIST_MAX)).default(LIST_DEFAULT);

/**
 * Parses ISO 8601 with a zone (`2026-11-27T10:00:00Z`), `now`, or a time relative to now (`+90s`, `-1d`). @returns Unix ms
 */
export function parseTime(text: string): number {
  const atMs = readTime(text, Date.now());
  if (atMs !== null) return atMs;
  throw new InvalidArgumentError(
    'must be ISO 8601 with a zone, such as 2026-11-27T10:00:00Z or 2026-11-27T10:00:00+01:00, or now, +10m, -2h.',
  );
}

/** @throws UsageError if a time span ends before it begins */
export function checkSpan(times: Readonly<Record<string, unknown>>): void {
  const span = spanReversed(times);
  if (span !== null) throw new UsageError(`${flagOf(span.to)} must not be earlier than ${flagOf(span.from)}.`);
}

/** `priceCents` → `--price-cents` */
export const flagOf = (field: string): string => `--${field.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;

export function parseSaleId(text: string): string {
  if (!isSaleId(text)) throw new InvalidArgumentError('must be a sale id, which is a number.');
  return text;
}

export function parseId(text: string): string {
  if (!isId(text)) throw new InvalidArgumentError('must be an id: letters, digits, _ and -, up to 64.');
  return text;
}

/** Parses the number of a row that another command shows. */
export const parseRowNumber =
  (shownBy: string) =>
  (text: string): string => {
    if (!/^[1-9][0-9]{0,17}$/.test(text)) throw new InvalidArgumentError(`must be a number that \`${shownBy}\` shows.`);
    return text;
  };

export function parseUserId(text: string): string {
  if (!isUserId(text)) throw new InvalidArgumentError('must be 1 to 128 visible ASCII characters, without a blank.');
  return text;
}

/** The operator's name from `--as` or SECKILL_ACTOR. */
let named: string | null = null;

/** Sets the operator's name for the audit log of this run. */
export function nameOperator(name: string): void {
  named = name;
}

/**
 * Returns the operator's name for the audit log: the name from `--as`, or the user who signed in before sudo, followed
 * by the account in brackets, because anyone with that account can claim any name. Without either, it is only the
 * account. A user id contains no blank, so these names cannot be confused with a caller over HTTP.
 */
export function operatorName(env: NodeJS.ProcessEnv = process.env): string {
  const account = accountName();
  const who = named ?? (isUserId(env.SUDO_USER) ? env.SUDO_USER : account);
  return who === account ? account : `${who} (${account})`;
}

function accountName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`; // a container in which the user has no name
  }
}
