import { Command, InvalidArgumentError } from 'commander';
import { createRevocationRepository } from '../../mysql/revocation-repository.js';
import { isTokenId } from '../../core/ids.js';
import type { Revocation } from '../../core/ports/revocations.js';
import { NOT_YET, revocationBody } from './routes.js';
import { withConfigured } from '../../process/connections.js';
import { UsageError } from '../../process/cli-error.js';
import { limitOption, operatorName, parseTime, parseUserId, parseWhole, subcommand } from '../../process/options.js';
import { isoTime, print, printPage, tableLine } from '../../process/print.js';

interface AddFlags {
  readonly user?: string;
  readonly before?: number;
  readonly tokenId?: string;
  readonly json?: boolean;
}

interface ListFlags {
  readonly before?: number;
  readonly limit: number;
  readonly json?: boolean;
}

const EXAMPLES = `
Every api refuses a revoked token within a second, whatever its role. The user can still sign in again. To keep a user out,
deny the user in the rules (lists.users.deny). To refuse all tokens of a key, remove the key.

Examples:
  seckill revocations add --user alice                  all current tokens of alice
  seckill revocations add --user 'auth0|507f' --before -1h
  seckill revocations add --token-id 6a3f0c1e-0d55-4c0b-9f6e-2f1b6e6a9b1d
  seckill revocations list --json

Reads and writes MySQL only. Exit codes: 0 done, 1 MySQL is down, 2 wrong usage.`;

export function revocationsCommand(): Command {
  const revocations = new Command('revocations')
    .description('revoke tokens before they expire, or list revocations')
    .addHelpText('after', EXAMPLES);
  subcommand(revocations, 'add', 'revoke all tokens of a user, or one token')
    .option('--user <id>', 'revoke the tokens of this user', parseUserId)
    .option(
      '--before <time>',
      'with --user: only tokens issued before this time: ISO 8601, now, -2h (default: now)',
      parseTime,
    )
    .option('--token-id <jti>', 'revoke the token with this `jti`', parseTokenId)
    .option('--json', 'print one JSON line')
    .action(add);
  subcommand(revocations, 'list', 'print one line per revocation, newest first')
    .option('--before <number>', 'only revocations before this number', parseWhole(1, 999_999_999))
    .addOption(limitOption('revocations'))
    .option('--json', 'one JSON line per revocation')
    .action(list);
  return revocations;
}

function parseTokenId(text: string): string {
  if (!isTokenId(text)) throw new InvalidArgumentError('must be 1 to 128 visible ASCII characters.');
  return text;
}

async function add({ user, before, tokenId, json }: AddFlags): Promise<void> {
  if ((user === undefined) === (tokenId === undefined)) throw new UsageError('give either --user or --token-id.');
  if (tokenId !== undefined && before !== undefined) throw new UsageError('--before needs --user.');
  const nowMs = Date.now();
  if ((before ?? nowMs) > nowMs) throw new UsageError(`--before ${NOT_YET}.`);
  const about = tokenId === undefined ? { userId: user as string, issuedBeforeMs: before ?? nowMs } : { tokenId };
  const revocation = await withConfigured('revocations', ['mysql', 'redis'], (connections) =>
    createRevocationRepository(connections.mysql()).add(about, operatorName()),
  );
  if (json) print(JSON.stringify(revocationBody(revocation)));
  else print(`Every api refuses ${aboutOf(revocation)} within a second.`);
}

async function list({ before, ...flags }: ListFlags): Promise<void> {
  const found = await withConfigured('revocations', ['mysql', 'redis'], (connections) =>
    createRevocationRepository(connections.mysql()).newest(flags.limit, before),
  );
  printPage(found, flags, {
    header: line('number', 'at', 'by', 'refused tokens'),
    line: (one) => line(`${one.number}`, isoTime(one.atMs), one.actor, aboutOf(one)),
    body: revocationBody,
    next: ({ number }) => `--before ${number}`,
  });
}

const aboutOf = (one: Revocation): string =>
  'tokenId' in one
    ? `the token ${one.tokenId}`
    : `tokens of ${one.userId} issued before ${isoTime(one.issuedBeforeMs)}`;

const line = tableLine(7, 24, 20);
