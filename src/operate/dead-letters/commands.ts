import { Command, Option } from 'commander';
import { decodeBatch } from '../../core/batch.js';
import {
  DEAD_LETTER_REASONS,
  DEAD_LETTER_STATES,
  type DeadLetterReason,
  type DeadLetterState,
} from '../../core/ports/dead-letters.js';
import { GROUPS } from '../../core/topics.js';
import { withConfigured } from '../../process/connections.js';
import type { DeadLetterAdmin } from './dead-letter-admin.js';
import {
  deadLetterBody,
  summaryBody,
  type DeadLetterFilter,
  type DeadLetterSummary,
  type StoredDeadLetter,
} from './dead-letter-store.js';
import { openDeadLetters } from './services.js';
import { CliError } from '../../process/cli-error.js';
import { workThroughDeadLetters, type WorkOrder } from './work-through.js';
import {
  checkSpan,
  operatorName,
  parseId,
  parseRowNumber,
  parseSaleId,
  parseTime,
  parseWhole,
  subcommand,
} from '../../process/options.js';
import { isoTime, print, printAll, printError, inLine, tableLine } from '../../process/print.js';
import { withoutUndefined } from '../../core/without-undefined.js';

interface FilterFlags {
  readonly group?: string;
  readonly since?: number;
  readonly until?: number;
  readonly sale?: string;
  readonly key?: string;
  readonly reason?: DeadLetterReason;
  readonly limit: number;
}

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

const DEAD_LETTERS_MAX = 10_000_000;
const LIST_DEFAULT = 50;
/** If there are more dead letters than this, the command asks for confirmation. */
const ASK_ABOVE = 100;
/** Maximum number of dead letters in progress. Each takes one message and a few statements. */
const IN_FLIGHT_MAX = 32;
const RATE_DEFAULT = 50;
const WAIT_SECONDS_DEFAULT = 30;
const DRY_RUN_SHOWN = 20;
const PURCHASES_SHOWN = 20;

const EXIT_PARTLY = 1;
const EXIT_USAGE = 2;

const EXAMPLES = `
A dead letter is a message that no attempt could handle, usually a batch of purchases that MySQL refused. It is \`parked\` in the
table dead_letters until a person decides. Its units stay held.
  replay    publishes it again, and waits until every purchase has its order (or the deadline or event is handled)
  discard   gives it up: its purchases become failed orders, and their units are for sale again
Both are safe to repeat. After Ctrl-C or a crash, run the same command again to continue.

Examples:
  seckill dlq list --state parked --since -1d
  seckill dlq show 17
  seckill dlq replay 17 18
  seckill dlq replay --all-matching --sale 7 --dry-run
  seckill dlq replay --all-matching --reason retries_exhausted --yes --rate 200
  seckill dlq discard 19
  seckill dlq export --since -1d > dead-letters.jsonl

Exit codes: 0 done, 1 done in part, 2 wrong usage, or --yes is needed.`;

export function dlqCommand(): Command {
  const dlq = new Command('dlq')
    .description('list, show, replay, discard and export dead letters, which are messages that no attempt could handle')
    .addHelpText('after', EXAMPLES);
  const state = (): Option =>
    new Option('--state <state>', 'only dead letters in this state').choices(DEAD_LETTER_STATES);
  const deadLetterId = parseRowNumber('dlq list');

  addFilters(subcommand(dlq, 'list', 'print one line per dead letter, oldest first'), LIST_DEFAULT)
    .addOption(state())
    .option('--after <deadLetterId>', 'only dead letters after this one', deadLetterId)
    .option('--json', 'one JSON line per dead letter')
    .action((flags: ListFlags) => run((admin) => list(admin, flags)));

  subcommand(dlq, 'show', 'show one dead letter with its purchases')
    .argument('<deadLetterId>', 'number that `dlq list` shows', deadLetterId)
    .option('--json', 'print one JSON line')
    .action((id: string, { json }: { json?: boolean }) => run((admin) => show(admin, id, json)));

  addFilters(subcommand(dlq, 'export', 'print dead letters with their bodies, one JSON line each'))
    .addOption(state())
    .action((flags: ListFlags) => run((admin) => exportDeadLetters(admin, flags)));

  addWork(subcommand(dlq, 'replay', 'publish parked messages again, and wait for their orders'))
    .option('--wait <seconds>', 'wait for each, 1 to 3600', parseWhole(1, 3600), WAIT_SECONDS_DEFAULT)
    .action((ids: readonly string[], flags: WorkFlags, command: Command) => {
      const options = { actor: operatorName(), waitMs: flags.wait * 1000 };
      return work(ids, flags, command, 'replayed', (admin) => (id, signal) => admin.replay(id, { ...options, signal }));
    });

  addWork(subcommand(dlq, 'discard', 'give up batches: write failed orders, and return their units')).action(
    (ids: readonly string[], flags: WorkFlags, command: Command) => {
      const actor = operatorName();
      return work(ids, flags, command, 'discarded', (admin) => (id) => admin.discard(id, actor));
    },
  );
  return dlq;
}

/** A dead letter must match all given filters. */
export function addFilters(command: Command, limit = DEAD_LETTERS_MAX): Command {
  return command
    .addOption(new Option('--group <group>', 'only dead letters of this consumer group').choices(Object.values(GROUPS)))
    .option('--since <time>', 'only if parked at this time or later: ISO 8601, or -2h for two hours ago', parseTime)
    .option('--until <time>', 'only if parked before this time', parseTime)
    .option('--sale <saleId>', 'only dead letters of this sale', parseSaleId)
    .option('--key <id>', 'only this batch id, or parked batches with this request id (Idempotency-Key)', parseId)
    .addOption(new Option('--reason <reason>', 'only dead letters with this reason').choices(DEAD_LETTER_REASONS))
    .option('--limit <count>', 'maximum number of dead letters, oldest first', parseWhole(1, DEAD_LETTERS_MAX), limit);
}

const NARROWING = [
  'group',
  'since',
  'until',
  'sale',
  'key',
  'reason',
  'limit',
] as const satisfies (keyof FilterFlags)[];

export function filterOf({ group, since, until, sale, key, reason }: FilterFlags): DeadLetterFilter {
  checkSpan({ since, until });
  return withoutUndefined({ group, sinceMs: since, untilMs: until, saleId: sale, key, reason });
}

/** Commander passes the ids that it has read so far. */
export const parseDeadLetterIds = (text: string, before: readonly string[] = []): readonly string[] => [
  ...before,
  parseRowNumber('dlq list')(text),
];

function addWork(command: Command): Command {
  command.argument('[deadLetterIds...]', 'numbers that `dlq list` shows', parseDeadLetterIds);
  return addFilters(command)
    .option('--all-matching', 'handle all parked dead letters that match the filters, instead of numbers')
    .option('--dry-run', `only show the matches (the default if more than ${ASK_ABOVE} match)`)
    .option('--yes', `continue even if more than ${ASK_ABOVE} match`)
    .option('--rate <per second>', 'maximum number per second', parseWhole(1, 10_000), RATE_DEFAULT)
    .option('--json', 'one JSON line per dead letter');
}

async function run(task: (admin: DeadLetterAdmin) => Promise<void>): Promise<void> {
  await withConfigured('dlq', ['mysql', 'redis', 'rocketmq', 'brokerAccess', 'messages'], async (connections) =>
    task((await openDeadLetters(connections)).deadLetters),
  );
}

async function list(admin: DeadLetterAdmin, { json, state, after, limit, ...flags }: ListFlags): Promise<void> {
  const filter = { ...filterOf({ ...flags, limit }), ...withoutUndefined({ state }) };
  if (!json) printHeading();
  let last: DeadLetterSummary | null = null;
  let shown = 0;
  for await (const deadLetter of admin.matching(filter, limit, after)) {
    printSummary(deadLetter, json);
    last = deadLetter;
    shown++;
  }
  if (!json && shown === limit && last !== null) printError(`For more, add --after ${last.deadLetterId}.`);
}

async function show(admin: DeadLetterAdmin, deadLetterId: string, json: boolean | undefined): Promise<void> {
  const deadLetter = await found(admin, deadLetterId);
  if (json) print(JSON.stringify(deadLetterBody(deadLetter)));
  else printDeadLetter(deadLetter);
}

async function exportDeadLetters(admin: DeadLetterAdmin, { state, limit, ...flags }: ListFlags): Promise<void> {
  const filter = { ...filterOf({ ...flags, limit }), ...withoutUndefined({ state }) };
  for await (const { deadLetterId } of admin.matching(filter, limit)) {
    const deadLetter = await admin.find(deadLetterId);
    if (deadLetter === null) continue;
    if (!(await printAll(`${inLine(JSON.stringify(deadLetterBody(deadLetter)))}\n`))) return;
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
  if (allMatching === ids.length > 0) command.error('error: give numbers of dead letters, or --all-matching');
  const narrowing = NARROWING.filter((name) => command.getOptionValueSource(name) === 'cli');
  if (!allMatching && narrowing.length > 0)
    command.error(`error: --${narrowing.join(', --')} cannot be used with numbers, only with --all-matching`);
  const filter = filterOf(flags);
  await run(async (admin) => {
    const matching = (max: number): AsyncIterable<DeadLetterSummary> => admin.parkedMatching(filter, max);
    const total = allMatching ? Math.min(limit, await admin.count({ ...filter, state: 'parked' })) : ids.length;
    const mustAsk = allMatching && total > ASK_ABOVE && !yes;
    if (flags.dryRun || mustAsk) {
      await dryRun(allMatching ? matching(limit) : deadLettersOf(admin, ids), total, json);
      if (flags.dryRun) return;
      printError(`More than ${ASK_ABOVE} dead letters match. Add --yes to continue.`);
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

async function dryRun(deadLetters: AsyncIterable<DeadLetterSummary>, total: number, json: boolean): Promise<void> {
  let shown = 0;
  if (!json) printHeading();
  for await (const deadLetter of deadLetters) {
    printSummary(deadLetter, json);
    if (!json && ++shown === DRY_RUN_SHOWN && total > shown) {
      print(`… and ${total - shown} more`);
      break;
    }
  }
  if (!json) print(`${total} would be handled; nothing was done.`);
}

async function* idsOf(deadLetters: AsyncIterable<DeadLetterSummary>): AsyncGenerator<string> {
  for await (const { deadLetterId } of deadLetters) yield deadLetterId;
}

async function* deadLettersOf(admin: DeadLetterAdmin, ids: readonly string[]): AsyncGenerator<DeadLetterSummary> {
  for (const deadLetterId of ids) yield found(admin, deadLetterId);
}

async function found(admin: DeadLetterAdmin, deadLetterId: string): Promise<StoredDeadLetter> {
  const deadLetter = await admin.find(deadLetterId);
  if (deadLetter === null) throw new CliError(`there is no dead letter ${deadLetterId}.`);
  return deadLetter;
}

const line = tableLine(8, 24, 9, 17, 18, 22, 7);

const printHeading = (): void => print(line('id', 'parked at', 'state', 'reason', 'sale', 'batch', 'replays', 'note'));

function printSummary(deadLetter: DeadLetterSummary, json: boolean | undefined): void {
  if (json) return print(JSON.stringify(summaryBody(deadLetter)));
  const { deadLetterId, parkedAtMs, state, reason, saleId, batchId, replays, note, detail } = deadLetter;
  const ids = [saleId ?? '-', batchId ?? '-'];
  print(line(deadLetterId, isoTime(parkedAtMs), state, reason, ...ids, String(replays), note ?? detail));
}

function printDeadLetter({ body, ...summary }: StoredDeadLetter): void {
  const printField = (name: string, value: unknown): void =>
    print(`${name.padEnd(16)} ${inLine(String(value ?? '-'))}`);
  for (const [name, value] of Object.entries(summaryBody(summary))) printField(name, value);
  const decoded = decodeBatch(body);
  if (decoded.outcome !== 'decoded') {
    printField('body', `not a batch: ${decoded.detail}`);
    return print(inLine(body));
  }
  const { purchases, bucket, epoch, createdAtMs } = decoded.batch;
  printField('bucket, epoch', `${bucket}, ${epoch}`);
  printField('formed at', isoTime(createdAtMs));
  printField('purchases', purchases.length);
  for (const { userId, requestId, quantity, metadata } of purchases.slice(0, PURCHASES_SHOWN)) {
    const noted = metadata === undefined ? '' : `  metadata ${JSON.stringify(metadata)}`;
    print(inLine(`  buyer ${userId}  request ${requestId}  quantity ${quantity}${noted}`));
  }
  if (purchases.length > PURCHASES_SHOWN) print(`  … all of them with --json`);
}
