import { Command, InvalidArgumentError } from 'commander';
import { withConfigured } from '../../process/connections.js';
import type { RulesDocument, Switch } from '../../contract/rules.js';
import { assertNever } from '../../core/errors.js';
import { fieldSentences } from '../../core/field-errors.js';
import { already } from './change-rules.js';
import { canaryBody, canaryLines, CANARY_RUNNING, NO_CANARY } from './canary.js';
import { diffRules } from './diff-rules.js';
import type { CanaryEnd, RuleAdmin, Unfit } from './rule-admin.js';
import { canaryTerms, type CanaryTerms } from '../../admission/rules/canary.js';
import { parseRules, type RuleReason } from '../../admission/rules/rule-set.js';
import { checkedRulesBody, readRulesDocument, ruleChangeBody } from './routes.js';
import { CliError, UsageError } from '../../process/cli-error.js';
import { operatorName, parseWhole, subcommand } from '../../process/options.js';
import { isoTime, print, printError, inLine, tableLine } from '../../process/print.js';
import { readText } from '../../process/read-text.js';
import { findInForce, inForceFields, inForceSentence, WAIT_OPTION, type Found } from './where-in-force.js';
import { openRules, type RuleServices } from './services.js';
import { switchedBody, switchesBody } from './switch-routes.js';
import { readSwitchArguments, type SwitchAdmin, type SwitchAnswer, type SwitchChange } from './switches.js';

export { roomCommand } from './room-commands.js';

interface Flags {
  readonly json?: boolean;
}
interface WaitFlags extends Flags {
  /** In seconds. */
  readonly wait: number;
}
interface SetFlags extends WaitFlags {
  /** In percent. */
  readonly canary?: number;
  readonly minutes?: number;
  /** In percentage points. */
  readonly maxRefused?: number;
}

/** Gives an api that is just loading new rules time to finish, so that the report does not list it as late. */
const STATUS_WAIT_S = 1;
const LIST_DEFAULT = 20;
const LIST_MAX = 10_000;
const VERSION_MAX = 999_999_999;

const RULES_EXAMPLES = `
A versioned document configures admission: lists, limits, signatures, waiting room, breakers.
Until rules are published, every request is admitted. docs/admission.md explains each part.

Examples:
  seckill rules show > rules.json        change it, then
  seckill rules check rules.json         finds errors, without a server
  seckill rules set rules.json           publishes the rules, and says where they are in force
  seckill rules set rules.json --wait 60 gives the apis a minute
  seckill rules set rules.json --canary 1% --minutes 10 --max-refused +5%
                                         1 % of the users try the rules first
  seckill rules promote                  ends the canary: its rules apply to all users
  seckill rules rollback                 ends the canary: the old rules apply to all users
  seckill rules diff rules.json          how the file differs from the newest rules
  seckill rules status                   where the newest rules are in force, and the counts of the canary
  seckill rules show 3 --json            version 3 as published
  seckill rules history --limit 5

The file holds {"version": …, "rules": {…}}; version is the version that you edited. If there is a newer version,
\`rules set\` changes nothing: run \`rules show\` again and repeat your change. Every api reports its version once a second.
A canary judges a share of the users, always the same users. When its time is over, the keeper promotes it. The keeper rolls it
back if its share of refused purchases is higher than that of the other users by more than --max-refused percentage points.
\`rules diff\`: exit code 0 no difference, 1 differences or a running canary.
Exit codes: 0 done, and in force in every running api; 1 not done or not in force (invalid rules, a newer version, an api that does
not follow, or no running api); 2 wrong usage. With --wait 0, exit code 0 means only that the rules are published.`;

export function rulesCommand(): Command {
  const rules = new Command('rules')
    .description('show, check and publish the admission rules')
    .addHelpText('after', RULES_EXAMPLES);
  subcommand(rules, 'show', 'print the newest rules with all defaults')
    .argument('[version]', 'number of an older version, which is printed as published', parseWhole(1, VERSION_MAX))
    .option('--json', 'print one JSON line')
    .action((version: number | undefined, flags: Flags) => run('rules', ({ rules }) => show(rules, version, flags)));
  subcommand(rules, 'check', 'find the errors in a file of rules, without a server')
    .argument('<file>', 'JSON file in the format of `rules show`')
    .option('--json', 'print one JSON line')
    .action(check);
  subcommand(rules, 'set', 'publish the rules of a file, which replace the current rules')
    .argument('<file>', 'JSON file in the format of `rules show`')
    .option('--canary <percent>', 'share of users who try the rules first, such as 1% (at most 50%)', parsePercent)
    .option('--minutes <minutes>', 'length of the canary, 1 to 1440 (default: 10)', parseWhole(1, 1440))
    .option('--max-refused <points>', 'how much more the canary may refuse, such as +5% (default: +5%)', parsePercent)
    .option(...WAIT_OPTION)
    .option('--json', 'print one JSON line')
    .action((file: string, flags: SetFlags) => set(file, flags));
  subcommand(rules, 'promote', 'end the canary: its rules apply to all users')
    .option(...WAIT_OPTION)
    .option('--json', 'print one JSON line')
    .action((flags: WaitFlags) => run('rules', (services) => endCanary(services, 'promoted', flags)));
  subcommand(rules, 'rollback', 'end the canary: the old rules apply to all users')
    .option(...WAIT_OPTION)
    .option('--json', 'print one JSON line')
    .action((flags: WaitFlags) => run('rules', (services) => endCanary(services, 'rolled_back', flags)));
  subcommand(rules, 'diff', 'show how a file differs from the newest rules')
    .argument('<file>', 'JSON file in the format of `rules show`')
    .option('--json', 'print one JSON line')
    .action((file: string, flags: Flags) => diff(file, flags));
  subcommand(rules, 'status', 'show which apis follow the newest rules, and why others do not')
    .option('--json', 'print one JSON line')
    .action((flags: Flags) => run('rules', (services) => status(services, flags)));
  subcommand(rules, 'history', 'show who published rules, newest first')
    .option('--limit <count>', 'maximum number of versions', parseWhole(1, LIST_MAX), LIST_DEFAULT)
    .option('--json', 'one JSON line per version')
    .action((flags: Flags & { limit: number }) => run('rules', ({ rules }) => history(rules, flags)));
  return rules;
}

const run = (name: 'rules' | 'switch', task: (services: RuleServices) => Promise<void>): Promise<void> =>
  withConfigured(name, ['mysql', 'redis'], async (connections) => task(await openRules(connections)));

async function show(admin: RuleAdmin, version: number | undefined, { json }: Flags): Promise<void> {
  const stored = version === undefined ? await admin.show() : await admin.find(version);
  if (stored === null) throw new CliError(`there is no version ${version} of the rules.`);
  print(JSON.stringify(stored, null, json ? 0 : 2));
}

/** Needs no server, so that it can run where people review rules. */
function check(file: string, { json }: Flags): void {
  const { rules } = documentIn(file);
  const parsed = parseRules(rules);
  const reasons = 'reasons' in parsed ? parsed.reasons : [];
  if (json) print(JSON.stringify(checkedRulesBody(reasons)));
  if (reasons.length > 0) throw wrong(file, reasons);
  if (!json) print(`${file} is valid.`);
}

async function diff(file: string, { json }: Flags): Promise<void> {
  const parsed = parseRules(documentIn(file).rules);
  if ('reasons' in parsed) throw wrong(file, parsed.reasons);
  await run('rules', async ({ rules }) => {
    const [{ version, rules: inForce }, { canary }] = [await rules.show(), await rules.standing()];
    const differences = diffRules(inForce, parsed.rules);
    if (canary !== null) printError(CANARY_RUNNING);
    if (json) print(JSON.stringify({ version, differences }));
    else if (differences.length === 0) print(`${file} is the same as version ${version}.`);
    else for (const difference of differences) print(inLine(difference));
    if (differences.length > 0 || canary !== null) process.exitCode = 1;
  });
}

function parsePercent(text: string): number {
  const [, number] = /^\+?(\d{1,3}(?:\.\d{1,3})?)%?$/.exec(text) ?? [];
  if (number === undefined || Number(number) > 100) throw new InvalidArgumentError('must be a percentage, such as 1%.');
  return Number(number);
}

function termsOf({ canary, minutes, maxRefused }: SetFlags): CanaryTerms | null {
  if (canary !== undefined) {
    const read = canaryTerms.safeParse({ percent: canary, minutes, maxRefusedPercent: maxRefused });
    if (read.success) return read.data;
    throw new UsageError('--canary must be above 0% and at most 50%.');
  }
  if (minutes !== undefined || maxRefused !== undefined)
    throw new UsageError('--minutes and --max-refused need --canary.');
  return null;
}

async function set(file: string, flags: SetFlags): Promise<void> {
  const { json, wait } = flags;
  const terms = termsOf(flags);
  const { version, rules } = documentIn(file);
  if (version === undefined) throw new CliError(`${file}: version must be the version that you edited.`);
  await run('rules', async (services) => {
    const answer = await services.rules.publish(rules, version, operatorName(), terms);
    switch (answer.outcome) {
      case 'published': {
        if (answer.version === version && !json)
          print(`${file} is the same as version ${version}; nothing was published.`);
        if (terms !== null && !json) {
          print(
            `${terms.percent} % of the users try these rules for ${terms.minutes} min. See \`seckill rules status\`.`,
          );
        }
        return report(services, answer, { json, wait });
      }
      case 'invalid':
        throw wrong(file, answer.reasons);
      case 'version_conflict':
        throw new CliError(`${file} was made from version ${version}, but the newest is ${answer.version} now.`);
      case 'canary_running':
        throw new CliError(CANARY_RUNNING);
      default:
        return assertNever(answer);
    }
  });
}

async function report(
  { ruleReports }: RuleServices,
  answer: { readonly version: number },
  { json, wait }: WaitFlags,
): Promise<void> {
  const found = await findInForce(ruleReports, answer.version, wait);
  if (json) print(JSON.stringify({ ...answer, ...inForceFields(found) }));
  const sentence = inForceSentence(found);
  if (!json) print(sentence);
}

async function endCanary(services: RuleServices, end: CanaryEnd, flags: WaitFlags): Promise<void> {
  const newest = await services.rules.read();
  if ('outcome' in newest) throw unfit(newest);
  const answer = await services.rules.endCanary(newest, end, operatorName());
  switch (answer.outcome) {
    case 'published':
      return report(services, answer, flags);
    case 'no_canary':
      throw new CliError(NO_CANARY);
    case 'version_conflict':
      throw new CliError('the rules changed at the same time; nothing was done. Try again.');
    case 'invalid':
      throw unfit({ outcome: 'rules_unfit', reasons: answer.reasons });
    default:
      return assertNever(answer);
  }
}

async function status({ rules, ruleReports }: RuleServices, { json }: Flags): Promise<void> {
  const { version, canary } = await rules.standing();
  const found = await findInForce(ruleReports, version, STATUS_WAIT_S);
  const body = canaryBody(canary, 'apis' in found ? found.apis : []);
  if (json) print(JSON.stringify({ ...inForceFields(found), canary: body }));
  else if (body !== null) print(canaryLines(body).join('\n'));
  const sentence = inForceSentence(found);
  if (!json) print(sentence);
}

async function history(admin: RuleAdmin, { limit, json }: Flags & { limit: number }): Promise<void> {
  const changes = await admin.history(limit);
  if (!json) print(line('version', 'at', 'by'));
  for (const change of changes) {
    const { version, atMs, actor } = change;
    print(json ? JSON.stringify(ruleChangeBody(change)) : line(`${version}`, isoTime(atMs), actor));
  }
}

function documentIn(file: string): RulesDocument {
  const read = readRulesDocument(readText(file));
  if ('rules' in read) return read;
  throw new CliError(`${file}: ${fieldSentences(read)}`);
}

const wrong = (file: string, reasons: readonly RuleReason[]): CliError => refusal(`${file} is invalid:`, reasons);

const refusal = (what: string, reasons: readonly RuleReason[]): CliError =>
  new CliError([what, ...reasons.map(({ path, message }) => `  ${path} ${message}`)].map(inLine).join('\n'));

const line = tableLine(7, 24);

const SWITCH_EXAMPLES = `
Under load an api can give smaller answers, to leave CPU for purchases. A switch sets the level by hand.

Endpoints: purchase (buy), status (what became of a purchase), sale (its page), order. Levels:
  L0  the full answer
  L1  an older answer, marked as stale
  L2  its essential fields
  L3  an empty answer of the right shape
  L4  refused at once with 503. A purchase allows only L0 and L4

Examples:
  seckill switch                             shows the levels
  seckill switch sale L1                     for all users
  seckill switch purchase L4 --percent 20    for a fifth of the users, always the same users
  seckill switch sale L0                     back to full answers

Each change is a new version of the rules: \`seckill rules history\` says who set it, \`seckill rules status\` where it is in force.
Exit codes: 0 done, and in force in every running api; 1 not; 2 wrong usage. --wait 0 does not check the apis.`;

export function switchCommand(): Command {
  return new Command('switch')
    .description('show the degradation levels, or set the level of one endpoint')
    .argument('[endpoint]', 'purchase, status, sale or order')
    .argument('[level]', 'L0 to L4')
    .option('--percent <share>', 'percentage of users, 0 to 100 (default: all)')
    .option(...WAIT_OPTION)
    .option('--json', 'print one JSON line')
    .addHelpText('after', SWITCH_EXAMPLES)
    .action(showOrSet);
}

async function showOrSet(
  endpoint: string | undefined,
  level: string | undefined,
  flags: WaitFlags & { readonly percent?: string },
  command: Command,
): Promise<void> {
  if (endpoint === undefined) {
    if (flags.percent !== undefined) command.error('error: --percent needs an endpoint and a level');
    return run('switch', ({ switches }) => showSwitches(switches, flags));
  }
  if (level === undefined) return command.error(`error: give a level for ${inLine(endpoint)}: L0 to L4`);
  const read = readSwitchArguments(endpoint, level, flags.percent);
  if (read.read === 'refused') {
    return command.error(`error: ${inLine(fieldSentences(read.errors))}`);
  }
  await run('switch', ({ switches, ruleReports }) =>
    setSwitch(switches, read.change, flags, (version) => findInForce(ruleReports, version, flags.wait)),
  );
}

/** @throws CliError when the rules cannot be read */
export async function showSwitches(admin: SwitchAdmin, { json }: Flags): Promise<void> {
  const found = await admin.show();
  if (found.outcome === 'rules_unfit') throw unfit(found);
  if (json) return print(JSON.stringify(switchesBody(found)));
  print(switchLine('endpoint', 'level', 'percent', 'in force'));
  for (const row of found.switches) print(lineOf(row));
}

/** @param ask which apis follow a version. @throws CliError when the switch was not set, or not everywhere */
export async function setSwitch(
  admin: SwitchAdmin,
  change: SwitchChange,
  { json }: Flags,
  ask: (version: number) => Promise<Found>,
): Promise<void> {
  const answer = await admin.set(change, operatorName());
  switch (answer.outcome) {
    case 'switched': {
      const found = await ask(answer.version);
      // `inForce` of a switch says whether its layer is on
      if (json) print(JSON.stringify({ ...switchedBody(answer), rules: inForceFields(found) }));
      else print(switchedSentence(answer));
      const sentence = inForceSentence(found);
      if (!json) print(sentence);
      return;
    }
    case 'version_conflict':
      throw new CliError('someone else changed the rules at the same time; nothing was switched. Try again.');
    case 'rules_unfit':
      throw unfit(answer);
    default:
      return assertNever(answer);
  }
}

function switchedSentence({ row, ...answer }: Extract<SwitchAnswer, { outcome: 'switched' }>): string {
  const { endpoint, level, percent, inForce } = row;
  const what = `${endpoint} is ${already(answer)}at ${level} for ${percent === 100 ? 'all' : `${percent} of 100 users`}`;
  const butOff = inForce ? '' : ', but has no effect, because degrade.mode of the rules is not "on"';
  return `${what}${butOff} (version ${answer.version}).`;
}

const unfit = ({ reasons }: Unfit): CliError => refusal('this program cannot read the newest rules:', reasons);

const lineOf = ({ endpoint, level, percent, inForce }: Switch): string =>
  switchLine(endpoint, level, `${percent}`, inForce ? 'yes' : 'no');

const switchLine = tableLine(9, 6, 8);
