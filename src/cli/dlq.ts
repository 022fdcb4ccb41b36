import { Command, Option } from 'commander';
import { withDeadLetterDesk } from '../programs/dead-letter-desk.js';
import { loadConfig } from '../core/config/load.js';
import { letterBody, summaryBody } from '../http/dead-letter-bodies.js';
import { createLog } from '../programs/log.js';
import type { DeadLetterDesk } from '../recovery/dead-letters/dead-letter-desk.js';
import { DEAD_LETTER_STATES, type DeadLetterState, type DeadLetterSummary } from '../core/ports/dead-letters.js';
import { CliError } from './cli-error.js';
import { addFilters, filterOf, operatorName, parseLetterId, parseLetterIds, type FilterFlags } from './dlq-options.js';
import { printHeading, printLetter, printSummary } from './dlq-print.js';
import { workThroughLetters, type WorkOrder } from './dlq-work.js';
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
    .option('--after <letterId>', 'go on behind this letter', parseLetterId)
    .option('--json', 'one JSON line per letter')
    .action((flags: ListFlags) => run((desk) => list(desk, flags)));

  dlq
    .command('show')
    .description('everything about one letter, its body decoded')
    .argument('<letterId>', 'as `dlq list` shows it', parseLetterId)
    .option('--json', 'print one JSON line')
    .action((letterId: string, { json }: { json?: boolean }) => run((desk) => show(desk, letterId, json)));

  addFilters(dlq.command('export').description('letters with their bodies, one JSON line each, to stdout'))
    .addOption(state())
    .action((flags: ListFlags) => run((desk) => exportLetters(desk, flags)));

  addWork(
    dlq
      .command('replay')
      .description('send letters to those who work on them again, and batches are followed to their orders'),
  )
    .option('--wait <seconds>', 'how long each is followed', parseWhole(1, 3600), WAIT_SECONDS_DEFAULT)
    .action((ids: readonly string[], flags: WorkFlags, command: Command) => {
      const options = { actor: operatorName(), waitMs: flags.wait * 1000 };
      return work(ids, flags, command, 'replayed', (desk) => (id, signal) => desk.replay(id, { ...options, signal }));
    });

  addWork(dlq.command('discard').description('give batches up: failed orders, and their units go back')).action(
    (ids: readonly string[], flags: WorkFlags, command: Command) => {
      const actor = operatorName();
      return work(ids, flags, command, 'discarded', (desk) => (id) => desk.discard(id, actor));
    },
  );
  return dlq;
}

function addWork(command: Command): Command {
  command.argument('[letterIds...]', 'as `dlq list` shows them', parseLetterIds);
  return addFilters(command)
    .option('--all-matching', 'every parked letter that the filters let through, instead of ids')
    .option('--dry-run', `only show them (done without asking when more than ${ASK_ABOVE} match)`)
    .option('--yes', `go on although more than ${ASK_ABOVE} match`)
    .option('--rate <per second>', 'letters begun in a second, at most', parseWhole(1, 10_000), RATE_DEFAULT)
    .option('--json', 'one JSON line per letter');
}

async function run(task: (desk: DeadLetterDesk) => Promise<void>): Promise<void> {
  const config = loadConfig(['mysql', 'redis', 'rocketmq', 'log'], process.env);
  await withDeadLetterDesk(config, createLog('dlq', 'error'), task);
}

async function list(desk: DeadLetterDesk, { json, state, after, limit, ...flags }: ListFlags): Promise<void> {
  const filter = { ...filterOf({ ...flags, limit }), ...(state === undefined ? {} : { state }) };
  if (!json) printHeading();
  let last: DeadLetterSummary | null = null;
  let shown = 0;
  for await (const letter of desk.matching(filter, limit, after)) {
    if (json) console.log(JSON.stringify(summaryBody(letter)));
    else printSummary(letter);
    last = letter;
    shown++;
  }
  if (!json && shown === limit && last !== null) console.error(`There may be more: add --after ${last.letterId}.`);
}

async function show(desk: DeadLetterDesk, letterId: string, json: boolean | undefined): Promise<void> {
  const letter = await desk.find(letterId);
  if (letter === null) throw new CliError(`there is no dead letter ${letterId}.`);
  if (json) console.log(JSON.stringify(letterBody(letter)));
  else printLetter(letter);
}

async function exportLetters(desk: DeadLetterDesk, { state, limit, ...flags }: ListFlags): Promise<void> {
  const filter = { ...filterOf({ ...flags, limit }), ...(state === undefined ? {} : { state }) };
  for await (const { letterId } of desk.matching(filter, limit)) {
    const letter = await desk.find(letterId);
    if (letter === null || process.stdout.write(`${JSON.stringify(letterBody(letter))}\n`)) continue;
    await new Promise((resolve) => process.stdout.once('drain', resolve));
  }
}

async function work(
  ids: readonly string[],
  flags: WorkFlags,
  command: Command,
  end: WorkOrder['end'],
  workOn: (desk: DeadLetterDesk) => WorkOrder['work'],
): Promise<void> {
  const { allMatching = false, yes = false, json = false, limit, rate } = flags;
  if (allMatching === ids.length > 0) command.error('error: name letters by their ids, or give --all-matching');
  const filter = filterOf(flags);
  await run(async (desk) => {
    const matching = (max: number): AsyncIterable<DeadLetterSummary> => desk.parkedMatching(filter, max);
    const total = allMatching ? Math.min(limit, await desk.count({ ...filter, state: 'parked' })) : ids.length;
    const mustAsk = allMatching && total > ASK_ABOVE && !yes;
    if (flags.dryRun || mustAsk) {
      await dryRun(allMatching ? matching(limit) : lettersOf(desk, ids), total, json);
      if (flags.dryRun) return;
      console.error(`More than ${ASK_ABOVE} letters match. Add --yes to go on.`);
      process.exitCode = EXIT_USAGE;
      return;
    }
    const letterIds = allMatching ? idsOf(matching(limit)) : ids;
    const pace = { perSecond: rate, inFlightMax: IN_FLIGHT_MAX };
    if (!(await workThroughLetters(desk, { letterIds, total, pace, json, end, work: workOn(desk) }))) {
      process.exitCode = EXIT_PARTLY;
    }
  });
}

const DRY_RUN_SHOWN = 20;

async function dryRun(letters: AsyncIterable<DeadLetterSummary>, total: number, json: boolean): Promise<void> {
  let shown = 0;
  if (!json) printHeading();
  for await (const letter of letters) {
    if (json) console.log(JSON.stringify(summaryBody(letter)));
    else printSummary(letter);
    if (!json && ++shown === DRY_RUN_SHOWN && total > shown) {
      console.log(`… and ${total - shown} more`);
      break;
    }
  }
  if (!json) console.log(`${total} would be worked on; nothing was done.`);
}

async function* idsOf(letters: AsyncIterable<DeadLetterSummary>): AsyncGenerator<string> {
  for await (const { letterId } of letters) yield letterId;
}

async function* lettersOf(desk: DeadLetterDesk, ids: readonly string[]): AsyncGenerator<DeadLetterSummary> {
  for (const letterId of ids) {
    const letter = await desk.find(letterId);
    if (letter === null) throw new CliError(`there is no dead letter ${letterId}.`);
    yield letter;
  }
}
