import { Command } from 'commander';
import { loadConfig } from '../../core/config/load.js';
import { WITNESS_STATES } from '../../core/ports/witness.js';
import type { MysqlPool } from '../../mysql/pool.js';
import { binlogProblem } from '../../mysql/read-facts.js';
import { createWitnessStore, type WitnessStore } from '../../mysql/witness-store.js';
import { UsageError } from '../../process/cli-error.js';
import { addListAndClose } from '../../process/closable.js';
import { withConnections, type Connections } from '../../process/connections.js';
import { operatorName, parseRowNumber, parseSaleId, subcommand } from '../../process/options.js';
import { isoTime, print, printError, tableLine } from '../../process/print.js';
import { systemClock as clock } from '../../process/system-clock.js';
import { createLog } from '../../process/telemetry.js';
import { resolveFinding } from './resolve.js';
import { findingBody } from './routes.js';

interface ResolveFlags {
  readonly all?: boolean;
  readonly dryRun?: boolean;
  readonly json?: boolean;
}

const EXAMPLES = `
With WITNESS=watch or act, a keeper follows the binary log of MySQL and judges each committed transaction. A finding is a change
that no program makes: somebody wrote by hand, or a program has a fault. docs/recovery.md (The witness) explains the kinds.

Examples:
  seckill witness list                     open findings, oldest first
  seckill witness list --state all --sale 7 --json
  seckill witness close 12                 you have explained or repaired it
  seckill witness resolve --all --dry-run  what would be done about each open finding
  seckill witness status                   how far a keeper has read

Reads and writes MySQL only.
Exit codes: 0 done, 1 not done (no such finding, a finding needs a person, or MySQL is down), 2 wrong usage.`;

const RESOLVE_DETAILS = `
Acts only on changes from which one thing follows: an unpaid order that was cancelled or has expired by hand gets its outbox rows
and gives its units back; a new order, or an outbox row that was deleted, gets its outbox row (again); \`sold\` becomes the sum of
the orders. Money, and whatever else is in doubt, stays open, and the line says which command helps.

With WITNESS=act, a keeper does the same a minute after each change. Safe to repeat.

Exit codes: 0 all are resolved, 1 some failed, need a person or do not exist, 2 wrong usage.`;

const EXIT_PARTLY = 1;
const line = tableLine(8, 24, 6, 20, 19);

export function witnessCommand(): Command {
  const witness = new Command('witness')
    .description('list, resolve or close changes of the books that no program makes, or show how far the log was read')
    .addHelpText('after', EXAMPLES);
  addListAndClose(witness, {
    noun: 'finding',
    states: WITNESS_STATES,
    withStore: (task) => run((connections) => task(createWitnessStore(connections.mysql()))),
    idOf: ({ findingId }) => findingId,
    body: findingBody,
    header: line('finding', 'committed', 'state', 'kind', 'order', 'detail'),
    line: ({ findingId, committedAtMs, state, kind, orderId, detail }) =>
      line(findingId, isoTime(committedAtMs), state, kind, orderId ?? '-', detail),
  }).option('--sale <saleId>', 'only findings of this sale', parseSaleId);
  subcommand(witness, 'resolve', 'do what follows from findings, and close them')
    .argument('[findingIds...]', 'numbers that `witness list` shows', parseFindingIds)
    .option('--all', 'take all open findings; give no numbers then')
    .option('--dry-run', 'only show what would be done')
    .option('--json', 'one JSON line per finding')
    .addHelpText('after', RESOLVE_DETAILS)
    .action(resolveFindings);
  subcommand(witness, 'status', 'show how far the binary log was read, and what keeps a keeper from reading it')
    .option('--json', 'print one JSON line')
    .action(({ json }: { json?: boolean }) => run((connections) => status(connections.mysql(), json)));
  return witness;
}

async function run(task: (connections: Connections<'mysql' | 'redis'>) => Promise<void>): Promise<void> {
  await withConnections(loadConfig(['mysql', 'redis'], process.env), createLog('witness', 'error'), task);
}

const parseFindingId = parseRowNumber('witness list');
const parseFindingIds = (text: string, before: readonly string[] = []): string[] => [...before, parseFindingId(text)];
/** Number of findings per read. */
const PAGE = 100;
const resolvedLine = tableLine(8, 13, 15, 22);

async function resolveFindings(
  given: readonly string[],
  { all = false, dryRun = false, json }: ResolveFlags,
): Promise<void> {
  if (all === given.length > 0) throw new UsageError('give the numbers of findings, or --all.');
  await run(async (connections) => {
    const mysql = connections.mysql();
    const { outboxKeepMs } = loadConfig(['keeper'], process.env).keeper;
    const request = { actor: operatorName(), dryRun, outboxKeepMs };
    if (!json) print(resolvedLine('finding', 'outcome', 'action', 'kind', 'note'));
    for await (const findingId of all ? openFindings(createWitnessStore(mysql)) : given) {
      const resolved = await resolveFinding(mysql, clock, findingId, request);
      if (resolved === null || ['person', 'failed'].includes(resolved.outcome)) process.exitCode = EXIT_PARTLY;
      if (resolved === null) printError(`There is no finding ${findingId}.`);
      else if (json) print(JSON.stringify(resolved));
      else print(resolvedLine(findingId, resolved.outcome, resolved.action, resolved.kind, resolved.note));
    }
    if (dryRun && !json) printError('Nothing was changed.');
  });
}

async function* openFindings(store: WitnessStore): AsyncGenerator<string> {
  let found: readonly string[] = [];
  do {
    const page = { after: found.at(-1) ?? '0', max: PAGE };
    found = (await store.list({ state: 'open' }, page)).map(({ findingId }) => findingId);
    yield* found;
  } while (found.length === PAGE);
}

async function status(mysql: MysqlPool, json: boolean | undefined): Promise<void> {
  const store = createWitnessStore(mysql);
  const [stored, open, problem] = [await store.position(), await store.open(), await binlogProblem(mysql)];
  const { position = null, readToMs, savedAtMs } = stored ?? {};
  const [readTo, savedAt] = [readToMs, savedAtMs].map((ms) => (ms === undefined ? null : isoTime(ms)));
  if (json) return print(JSON.stringify({ position, readTo, savedAt, open, problem }));
  print(`read to    ${readTo ?? 'nothing yet: no keeper has run with WITNESS=watch or act'}`);
  if (position !== null) print(`stored     ${savedAt}\nposition   ${position}`);
  print(`open       ${open}\nthe log    ${problem ?? 'can be read'}`);
}
