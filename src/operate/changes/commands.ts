import { Command, InvalidArgumentError, Option } from 'commander';
import { loadConfig } from '../../core/config/load.js';
import { followBinlog, isLost } from '../../mysql/follow-binlog.js';
import { CliError } from '../../process/cli-error.js';
import { printAll } from '../../process/print.js';
import { systemClock as clock } from '../../process/system-clock.js';
import { changesIn } from './changes.js';

/** Maximum number of lines that wait for a slow reader. With more, the stream pauses. */
const LINES_MAX = 10_000;
/** A line is printed within this time. */
const PRINT_EVERY_MS = 100;

const CHANGES_DETAILS = `
Prints each committed change of an order or a sale, in the order of their commits, until you stop it: for caches and reports. It
follows the binary log of MySQL as a replica does, and needs what \`seckill doctor\` checks with WITNESS=watch. An order that moves
to the archive is no change.

Each JSON line has a "position", or null at the start. After an interruption, --after with the last position continues there: a change may come twice,
and none is missing.

Examples:
  seckill changes --follow                 from now on
  seckill changes --follow --json --after 0-1-4711

Reads MySQL only.
Exit codes: 0 stopped by you or by the reader, 1 the stream broke, 2 wrong usage.`;

export const changesCommand = (): Command =>
  new Command('changes')
    .description('print changes of orders and sales as they are committed')
    .addOption(new Option('--follow', 'print changes until you stop it').makeOptionMandatory())
    .option('--after <position>', 'only changes after this position of an earlier line', parsePosition)
    .option('--json', 'one JSON line per change')
    .addHelpText('after', CHANGES_DETAILS)
    .action(followChanges);

function parsePosition(text: string): string {
  if (/^[\w.:,/@-]{1,4000}$/.test(text)) return text;
  throw new InvalidArgumentError('must be the position of a line that `seckill changes --json` printed.');
}

const START_AGAIN = ' Read the present state first, then continue without --after.';

async function followChanges({ after, json }: { after?: string; json?: boolean }): Promise<void> {
  const stopping = new AbortController();
  const { signal } = stopping;
  process.once('SIGINT', () => stopping.abort()).once('SIGTERM', () => stopping.abort());
  const lines: string[] = [];
  let unreadable: string | null = null;
  /** The position after the last transaction that was printed completely. */
  let position = after ?? null;
  const stream = followBinlog(loadConfig(['mysql'], process.env).mysql, after ?? null, (transaction) => {
    unreadable ??= transaction.unreadable;
    if (unreadable !== null) return; // nothing behind it is printed
    const changes = changesIn(transaction);
    for (const [nth, change] of changes.entries()) {
      // A reader that stops in the middle of a transaction gets all of it again.
      if (nth === changes.length - 1) position = stream.position();
      const { at, what, id, before, after: now } = change;
      const states = `${before?.state ?? 'new'} -> ${now?.state ?? 'deleted'}`;
      const words = what === 'sale' ? `${states}, sold ${now?.sold ?? '-'} of ${now?.stock ?? '-'}` : states;
      lines.push(json ? JSON.stringify({ position, ...change }) : `${at}  ${what} ${id}  ${words}`);
    }
    if (lines.length > LINES_MAX) stream.pause();
  });
  try {
    for (;;) {
      const some = lines.splice(0);
      const isRead = some.length === 0 || (await printAll(`${some.join('\n')}\n`));
      const failure = stream.failure();
      if (signal.aborted || !isRead) return;
      if (failure !== null) {
        const todo = isLost(failure) ? START_AGAIN : '';
        throw new CliError(`the binary log cannot be followed: ${failure.message}.${todo}`);
      }
      if (unreadable !== null)
        throw new CliError(`a transaction has changes that cannot be read: ${unreadable}.${START_AGAIN}`);
      stream.resume();
      await clock.sleep(PRINT_EVERY_MS, signal);
    }
  } finally {
    stream.stop();
  }
}
