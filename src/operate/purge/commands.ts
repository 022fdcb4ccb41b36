import { Command, InvalidArgumentError } from 'commander';
import { readDuration } from '../../core/duration.js';
import { CliError } from '../../process/cli-error.js';
import { withConfigured } from '../../process/connections.js';
import { operatorName, parseTime, parseUserId } from '../../process/options.js';
import { isoTime, print, printError, tableLine } from '../../process/print.js';
import { eraseBuyer, KEPT } from './erase-buyer.js';
import { purge, PURGED, type PurgedKind, type PurgeProgress } from './purge.js';

interface PurgeFlags {
  readonly olderThan: number;
  readonly only?: readonly PurgedKind[];
  readonly dryRun?: boolean;
  readonly json?: boolean;
}

/** Longer than the broker keeps a message. A younger record may still be needed to recognise a repeated message. */
const YOUNGEST = '-8d';
const EXIT_STOPPED = 1;

const PURGE_DETAILS = `
Deletes records for good, in small batches with pauses. It may run while sales sell, and again after any interruption.

  archive       archived orders that were made before then, with their payments, coupons, notes and trace ids
  coupons       coupons that expired before then, used or not, unless a payment holds them
  refunds       refunds that are done, once their payment is gone
  cases         closed payment cases
  dead-letters  replayed and discarded dead letters
  reconcile     records of comparisons, compensation jobs that have ended, and closed findings of the witness
  edits         finished changes of sales
  traces        trace ids of orders; the orders stay
  notifications what happened to orders of buyers
  webhooks      events that were sent to webhook endpoints, or dropped
  audit         the audit log

Records that are still open stay, and are counted as kept. Orders that are not archived, and sales, always stay. A payment that is
reported for a deleted order becomes a payment case. docs/data.md says what each table keeps and for how long.

Examples:
  seckill purge --older-than 400d --dry-run
  seckill purge --older-than 2026-01-01T00:00:00Z --only audit,dead-letters

--json prints one JSON line per kind. Exit codes: 0 done, 1 stopped or MySQL is down (run it again), 2 wrong usage.`;

export const purgeCommand = (): Command =>
  new Command('purge')
    .description('delete old records')
    .requiredOption('--older-than <age>', 'age, such as 400d, or a time in ISO 8601; at least 8 days', parseAge)
    .option('--only <kinds>', 'only these kinds, separated by commas', parseKinds)
    .option('--dry-run', 'only count')
    .option('--json', 'print one JSON line per kind')
    .addHelpText('after', PURGE_DETAILS)
    .action(run);

function parseAge(text: string): number {
  const beforeMs = parseTime(readDuration(text) === null ? text : `-${text}`);
  if (beforeMs > parseTime(YOUNGEST)) throw new InvalidArgumentError('must be at least 8 days ago.');
  return beforeMs;
}

function parseKinds(text: string): readonly PurgedKind[] {
  const wanted = text.split(',');
  if (!wanted.every((word) => (PURGED as readonly string[]).includes(word))) {
    throw new InvalidArgumentError(`must be one or more of ${PURGED.join(',')}.`);
  }
  return wanted as readonly PurgedKind[];
}

const line = tableLine(14, 12, 12);

async function run({ olderThan: beforeMs, only: kinds = PURGED, dryRun = false, json }: PurgeFlags): Promise<void> {
  const stopping = new AbortController();
  const stop = (): void => stopping.abort();
  process.once('SIGINT', stop).once('SIGTERM', stop);
  const isTerminal = process.stderr.isTTY && json !== true;
  const show = ({ what, removed, kept }: PurgeProgress): void => {
    if (isTerminal) process.stderr.write(`\r${what}: ${removed}, kept ${kept} `);
  };
  const { signal } = stopping;
  const order = { beforeMs, kinds, dryRun, actor: operatorName(), signal };
  const done = await withConfigured('purge', ['mysql', 'redis'], (connections) =>
    purge(order, { pool: connections.mysql(), clock: connections.clock }, show),
  );
  process.off('SIGINT', stop).off('SIGTERM', stop);
  if (isTerminal) process.stderr.write('\r');
  if (!json) print(line('kind', dryRun ? 'to remove' : 'removed', 'kept open'));
  for (const one of done) {
    if (json) print(JSON.stringify({ ...one, before: isoTime(beforeMs), dryRun }));
    else print(line(one.what, String(one.removed), String(one.kept)));
  }
  if (!signal.aborted) return;
  printError('Stopped. Run the same command again to continue.');
  process.exitCode = EXIT_STOPPED;
}

const ERASE_DETAILS = `
Replaces the id of a buyer by a random name in orders, coupons, the archive, dead letters, comparisons and the audit log, and
removes notes and trace ids of the orders. The books stay right. It cannot be undone. The audit log records it without the id.
It refuses while a sale of the buyer is not retired (RETIRE_AFTER_MS after its end), or while an order, charge, refund, case, repair
or dead letter is open.

Kept:
${KEPT.map((sentence) => `  - ${sentence}`).join('\n')}

Examples:
  seckill erase-buyer alice --dry-run
  seckill erase-buyer alice

--json prints one JSON line. Exit codes: 0 done, or nothing names the buyer; 1 refused or MySQL is down; 2 wrong usage.`;

export const eraseBuyerCommand = (): Command =>
  new Command('erase-buyer')
    .description('erase the personal data of one buyer')
    .argument('<userId>', 'id of the buyer', parseUserId)
    .option('--dry-run', 'only count')
    .option('--json', 'print one JSON line')
    .addHelpText('after', ERASE_DETAILS)
    .action(erase);

async function erase(
  userId: string,
  { dryRun = false, json }: { readonly dryRun?: boolean; readonly json?: boolean },
): Promise<void> {
  const result = await withConfigured('erase-buyer', ['mysql', 'redis'], (connections) =>
    eraseBuyer({ userId, dryRun, actor: operatorName() }, { pool: connections.mysql(), clock: connections.clock }),
  );
  if (json) print(JSON.stringify({ ...result, dryRun }));
  if (result.outcome === 'open') {
    if (json) process.exitCode = EXIT_STOPPED;
    else throw new CliError(`nothing was erased.\n${result.why.map((one) => `  ${one}`).join('\n')}`);
    return;
  }
  if (json) return;
  for (const { what, rows } of result.rows) print(line(what.padEnd(24), String(rows)));
  if (result.outcome === 'unknown') print('Nothing names this buyer.');
  else print(dryRun ? 'Nothing was changed.' : `The buyer is ${result.name} now.`);
  printError(`Kept:\n${KEPT.map((sentence) => `  ${sentence}`).join('\n')}`);
}
