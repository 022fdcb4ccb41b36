import { Command, Option } from 'commander';
import { withOperator } from '../programs/operator.js';
import { loadConfig } from '../core/config/load.js';
import { deadLetterBody, summaryBody } from '../http/dead-letter-bodies.js';
import { createLog } from '../programs/telemetry.js';
import type { DeadLetterAdmin } from '../recovery/dead-letters/dead-letter-admin.js';
import {
  DEAD_LETTER_STATES,
  type DeadLetterState,
  type DeadLetterSummary,
} from '../core/ports/dead-letter-repository.js';
import { CliError } from './cli-error.js';
import {
  addFilters,
  filterOf,
  operatorName,
  parseDeadLetterId,
  parseDeadLetterIds,
  type FilterFlags,
} from './dlq-options.js';
import { printHeading, printDeadLetter, printSummary } from './dlq-print.js';
import { workThroughDeadLetters, type WorkOrder } from './dlq-work.js';
import { parseWhole } from './options.js';

interface ListFlags extends FilterFlags {
  readonly state?: DeadLetterState;
  readonly after?: string;
  readonly json?: boolean;
}

interface WorkFlags extends FilterFlags {
  readonly allMatching?: boolean;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
  readonly rate: number;
  readonly wait: number;
  readonly json?: boolean;
}

const LIST_DEFAULT = 50;
/** More than this is not begun before somebody has said yes. */
const ASK_ABOVE = 100;
/** Letters under way at once; each is a message and a few statements. */
const IN_FLIGHT_MAX = 32;
const RATE_DEFAULT = 50;
const WAIT_SECONDS_DEFAULT = 30;

const EXIT_PARTLY = 1;
const EXIT_USAGE = 2;

const EXAMPLES = `
Examples:
  seckill dlq list --state parked --since -1d
  seckill dlq show 17
  seckill dlq replay 17 18
  seckill dlq replay --all-matching --sale 7 --dry-run
  seckill dlq replay --all-matching --reason retries_exhausted --yes --rate 200
  seckill dlq discard 19

A replay sends the batch to the workers again and follows it until each of its purchases has a row; a deadline or an
event goes to its topic again, followed until no order is overdue, or each has its coupon. A discard gives the letter up: purchases become failed orders, their units go back. Both may be repeated, and stopped with Ctrl-C.
Exit codes: 0 done, 1 done in part, 2 used wrongly.`;

export function dlqCommand(): Command {
  const dlq = new Command('dlq').description('dead letters: list, show, replay, discard, export');
  dlq.addHelpText('after', EXAMPLES);
  const state = (): Option => new Option('--state <state>', 'where it stands').choices(DEAD_LETTER_STATES);

  addFilters(dlq.command('list').description('one line per letter, oldest first'), LIST_DEFAULT)
    .addOption(state())
    .option('--after <letterId>', 'go on behind this letter', parseDeadLetterId)
    .option('--json', 'one JSON line per letter')
    .action((flags: ListFlags) => run((admin) => list(admin, flags)));

  dlq
    .command('show')
    .description('everything about one letter, its body decoded')
    .argument('<letterId>', 'as `dlq list` shows it', parseDeadLetterId)
    .option('--json', 'print one JSON line')
    .action((deadLetterId: string, { json }: { json?: boolean }) => run((admin) => show(admin, deadLetterId, json)));

  addFilters(dlq.command('export').description('letters with their bodies, one JSON line each, to stdout'))
    .addOption(state())
    .action((flags: ListFlags) => run((admin) => exportDeadLetters(admin, flags)));

  addWork(
    dlq
      .command('replay')
      .description('send letters to those who work on them again, and batches are followed to their orders'),
  )
    .option('--wait <seconds>', 'how long each is followed', parseWhole(1, 3600), WAIT_SECONDS_DEFAULT)
    .action((ids: readonly string[], flags: WorkFlags, command: Command) => {
      const options = { actor: operatorName(), waitMs: flags.wait * 1000 };
      return work(ids, flags, command, 'replayed', (admin) => (id, signal) => admin.replay(id, { ...options, signal }));
    });

  addWork(dlq.command('discard').description('give batches up: failed orders, and their units go back')).action(
    (ids: readonly string[], flags: WorkFlags, command: Command) => {
      const actor = operatorName();
      return work(ids, flags, command, 'discarded', (admin) => (id) => admin.discard(id, actor));
    },
  );
  return dlq;
}

function addWork(command: Command): Command {
  command.argument('[letterIds...]', 'as `dlq list` shows them', parseDeadLetterIds);
  return addFilters(command)
    .option('--all-matching', 'every parked letter that the filters let through, instead of ids')
    .option('--dry-run', `only show them (done without asking when more than ${ASK_ABOVE} match)`)
    .option('--yes', `go on although more than ${ASK_ABOVE} match`)
    .option('--rate <per second>', 'letters begun in a second, at most', parseWhole(1, 10_000), RATE_DEFAULT)
    .option('--json', 'one JSON line per letter');
}

async function run(task: (admin: DeadLetterAdmin) => Promise<void>): Promise<void> {
  const config = loadConfig(['mysql', 'redis', 'rocketmq', 'log'], process.env);
  await withOperator(config, createLog('dlq', 'error'), async (operator) => task(await operator.deadLetters()));
}

async function list(admin: DeadLetterAdmin, { json, state, after, limit, ...flags }: ListFlags): Promise<void> {
  const filter = { ...filterOf({ ...flags, limit }), ...(state === undefined ? {} : { state }) };
  if (!json) printHeading();
  let last: DeadLetterSummary | null = null;
  let shown = 0;
  for await (const deadLetter of admin.matching(filter, limit, after)) {
    if (json) console.log(JSON.stringify(summaryBody(deadLetter)));
    else printSummary(deadLetter);
    last = deadLetter;
    shown++;
  }
  if (!json && shown === limit && last !== null) console.error(`There may be more: add --after ${last.deadLetterId}.`);
}

async function show(admin: DeadLetterAdmin, deadLetterId: string, json: boolean | undefined): Promise<void> {
  const deadLetter = await admin.find(deadLetterId);
  if (deadLetter === null) throw new CliError(`there is no dead letter ${deadLetterId}.`);
  if (json) console.log(JSON.stringify(deadLetterBody(deadLetter)));
  else printDeadLetter(deadLetter);
}

async function exportDeadLetters(admin: DeadLetterAdmin, { state, limit, ...flags }: ListFlags): Promise<void> {
  const filter = { ...filterOf({ ...flags, limit }), ...(state === undefined ? {} : { state }) };
  for await (const { deadLetterId } of admin.matching(filter, limit)) {
    const deadLetter = await admin.find(deadLetterId);
    if (deadLetter === null || process.stdout.write(`${JSON.stringify(deadLetterBody(deadLetter))}\n`)) continue;
    await new Promise((resolve) => process.stdout.once('drain', resolve));
  }
}

async function work(
  ids: readonly string[],
  flags: WorkFlags,
  command: Command,
  end: WorkOrder['end'],
  workOn: (admin: DeadLetterAdmin) => WorkOrder['work'],
): Promise<void> {
  const { allMatching = false, yes = false, json = false, limit, rate } = flags;
  if (allMatching === ids.length > 0) command.error('error: name letters by their ids, or give --all-matching');
  const filter = filterOf(flags);
  await run(async (admin) => {
    const matching = (max: number): AsyncIterable<DeadLetterSummary> => admin.parkedMatching(filter, max);
    const total = allMatching ? Math.min(limit, await admin.count({ ...filter, state: 'parked' })) : ids.length;
    const mustAsk = allMatching && total > ASK_ABOVE && !yes;
    if (flags.dryRun || mustAsk) {
      await dryRun(allMatching ? matching(limit) : deadLettersOf(admin, ids), total, json);
      if (flags.dryRun) return;
      console.error(`More than ${ASK_ABOVE} letters match. Add --yes to go on.`);
      process.exitCode = EXIT_USAGE;
      return;
    }
    const deadLetterIds = allMatching ? idsOf(matching(limit)) : ids;
    const pace = { perSecond: rate, inFlightMax: IN_FLIGHT_MAX };
    if (!(await workThroughDeadLetters(admin, { deadLetterIds, total, pace, json, end, work: workOn(admin) }))) {
      process.exitCode = EXIT_PARTLY;
    }
  });
}

const DRY_RUN_SHOWN = 20;

async function dryRun(deadLetters: AsyncIterable<DeadLetterSummary>, total: number, json: boolean): Promise<void> {
  let shown = 0;
  if (!json) printHeading();
  for await (const deadLetter of deadLetters) {
    if (json) console.log(JSON.stringify(summaryBody(deadLetter)));
    else printSummary(deadLetter);
    if (!json && ++shown === DRY_RUN_SHOWN && total > shown) {
      console.log(`… and ${total - shown} more`);
      break;
    }
  }
  if (!json) console.log(`${total} would be worked on; nothing was done.`);
}

async function* idsOf(deadLetters: AsyncIterable<DeadLetterSummary>): AsyncGenerator<string> {
  for await (const { deadLetterId } of deadLetters) yield deadLetterId;
}

async function* deadLettersOf(admin: DeadLetterAdmin, ids: readonly string[]): AsyncGenerator<DeadLetterSummary> {
  for (const deadLetterId of ids) {
    const deadLetter = await admin.find(deadLetterId);
    if (deadLetter === null) throw new CliError(`there is no dead letter ${deadLetterId}.`);
    yield deadLetter;
  }
}
