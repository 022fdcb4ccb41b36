import { Command, InvalidArgumentError, Option } from 'commander';
import { loadConfig } from '../../core/config/load.js';
import { WITNESS_STATES, type WitnessState } from '../../core/ports/witness.js';
import { withoutUndefined } from '../../core/without-undefined.js';
import { CliError } from '../../process/cli-error.js';
import { withConnections } from '../../process/connections.js';
import { operatorName, parseRowNumber, parseSaleId, parseWhole } from '../../process/options.js';
import { isoTime, print, printAll, printError, tableLine } from '../../process/print.js';
import { systemClock as clock } from '../../process/system-clock.js';
import { createLog } from '../../process/telemetry.js';
import { changesIn } from './changes.js';
import { findingBody } from './routes.js';
import { openWitness, type WitnessServices } from './services.js';
import type { WitnessFinding } from './witness-store.js';

interface ListFlags {
  readonly state: WitnessState | 'all';
  readonly sale?: string;
  readonly after?: string;
  readonly limit: number;
  readonly json?: boolean;
}
interface ChangesFlags {
  readonly after?: string;
  readonly json?: boolean;
}

const LIST_DEFAULT = 50;
const LIST_MAX = 10_000;

const EXAMPLES = `
With WITNESS=watch, a keeper follows the binary log of MySQL and judges each committed transaction. A finding is a change that no
program makes: somebody wrote by hand, or a program has a fault. docs/recovery.md (The witness) explains the kinds.

Examples:
  seckill witness list                     open findings, oldest first
  seckill witness list --state all --sale 7 --json
  seckill witness close 12                 you have explained or repaired it

Reads and writes MySQL only.
Exit codes: 0 done, 1 not done (there is no such finding, or MySQL is down), 2 wrong usage.`;

export function witnessCommand(): Command {
  const witness = new Command('witness')
    .description('list or close changes of the books that no program makes')
    .addHelpText('after', EXAMPLES);
  witness
    .command('list')
    .description('print one line per finding, oldest first')
    .addOption(
      new Option('--state <state>', 'only findings in this state').choices([...WITNESS_STATES, 'all']).default('open'),
    )
    .option('--sale <saleId>', 'only findings of this sale', parseSaleId)
    .option('--after <findingId>', 'only findings after this one', parseRowNumber('witness list'))
    .option('--limit <count>', 'maximum number of findings', parseWhole(1, LIST_MAX), LIST_DEFAULT)
    .option('--json', 'one JSON line per finding')
    .action((flags: ListFlags) => run((services) => list(services, flags)));
  witness
    .command('close')
    .description('mark a finding as explained or repaired')
    .argument('<findingId>', 'number that `witness list` shows', parseRowNumber('witness list'))
    .option('--json', 'print one JSON line')
    .action((findingId: string, { json }: { json?: boolean }) => run((services) => close(services, findingId, json)));
  return witness;
}

async function run(task: (services: WitnessServices) => Promise<void>): Promise<void> {
  const config = loadConfig(['mysql', 'redis'], process.env);
  await withConnections(config, createLog('witness', 'error'), (connections) => task(openWitness(connections)));
}

const line = tableLine(8, 24, 6, 20, 19);
const lineOf = ({ findingId, committedAtMs, state, kind, orderId, detail }: WitnessFinding): string =>
  line(findingId, isoTime(committedAtMs), state, kind, orderId ?? '-', detail);

async function list({ witness }: WitnessServices, { state, sale, after, limit, json }: ListFlags): Promise<void> {
  const filter = withoutUndefined({ state: state === 'all' ? undefined : state, saleId: sale });
  const found = await witness.list(filter, { max: limit, ...withoutUndefined({ after }) });
  if (!json) print(line('finding', 'committed', 'state', 'kind', 'order', 'detail'));
  for (const one of found) print(json ? JSON.stringify(findingBody(one)) : lineOf(one));
  if (!json && found.length === limit) printError(`For more, add --after ${found.at(-1)?.findingId}.`);
}

async function close({ witness }: WitnessServices, findingId: string, json: boolean | undefined): Promise<void> {
  const closed = await witness.close(findingId, operatorName());
  if (closed === null) throw new CliError(`there is no finding ${findingId}.`);
  print(json ? JSON.stringify(findingBody(closed)) : `finding ${findingId} is closed.`);
}

/** Lines that wait for a slow reader. The stream pauses beyond. */
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
  if (/^[\w.:,/-]{1,4000}$/.test(text)) return text;
  throw new InvalidArgumentError('must be the position of a line that `seckill changes --json` printed.');
}

async function followChanges({ after, json }: ChangesFlags): Promise<void> {
  const { followBinlog, isLost } = await import('./follow-binlog.js');
  const stopping = new AbortController();
  const { signal } = stopping;
  process.once('SIGINT', () => stopping.abort()).once('SIGTERM', () => stopping.abort());
  const lines: string[] = [];
  let unreadable: string | null = null;
  /** Behind the last transaction that is printed as a whole. */
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
        const todo = isLost(failure) ? ' Read the present state first, then continue without --after.' : '';
        throw new CliError(`the binary log cannot be followed: ${failure.message}.${todo}`);
      }
      if (unreadable !== null) throw new CliError(`a transaction has changes that cannot be read: ${unreadable}`);
      stream.resume();
      await clock.sleep(PRINT_EVERY_MS, signal);
    }
  } finally {
    stream.stop();
  }
}
