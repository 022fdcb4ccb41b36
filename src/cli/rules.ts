import { Command } from 'commander';
import { openRules } from '../programs/operator.js';
import { withConnections, type Connections } from '../process/connections.js';
import type { RulesDocument } from '../contract/rules.js';
import { loadConfig } from '../core/config/load.js';
import { assertNever } from '../core/errors.js';
import { fieldSentences } from '../core/field-errors.js';
import type { RuleAdmin } from '../admission/rules/rule-admin.js';
import { parseRules, type RuleReason } from '../admission/rules/rule-set.js';
import { checkedRulesBody, readRulesDocument, ruleChangeBody } from '../http/routes/rules.js';
import { createLog } from '../process/telemetry.js';
import { CliError } from '../process/cli-error.js';
import { operatorName, parseWhole } from '../process/options.js';
import { isoTime, print, inLine, tableLine } from '../process/print.js';
import { readText } from './read-text.js';
import { findInForce, inForceFields, inForceSentence, WAIT_OPTION } from './rules-in-force.js';

interface Flags {
  readonly json?: boolean;
}
interface WaitFlags extends Flags {
  /** In seconds. */
  readonly wait: number;
}

/** Gives an api that is just loading new rules time to finish, so that the report does not list it as late. */
const STATUS_WAIT_S = 1;
const LIST_DEFAULT = 20;
const LIST_MAX = 10_000;
const VERSION_MAX = 999_999_999;

const EXAMPLES = `
One versioned document says which requests are let in and how fast: lists, limits, signatures, waiting room, breakers.
Until rules are published, every request is admitted. docs/admission.md explains each part.

Examples:
  seckill rules show > rules.json        change it, then
  seckill rules check rules.json         says what is wrong with it; asks no server
  seckill rules set rules.json           publishes them, and says where they are in force
  seckill rules set rules.json --wait 60 gives the apis a minute
  seckill rules status                   where the newest are in force
  seckill rules show 3 --json            version 3, as it was published
  seckill rules history --limit 5

The file holds {"version": …, "rules": {…}}; version is the one it was made from. If there is a newer one, nothing is
changed: read them with \`rules show\`, and try again. Every api says in Redis once a second which version it follows.
Exit codes: 0 done, and in force in every api that runs; 1 not (the rules are wrong, there is a newer version, an api does not
follow, or no api runs); 2 used wrongly. With --wait 0 the apis are not asked, and 0 says only that the rules are published.`;

export function rulesCommand(): Command {
  const rules = new Command('rules')
    .description('the rules of admission: show, check, set, status, history')
    .addHelpText('after', EXAMPLES);
  rules
    .command('show')
    .description('the newest rules, with every default filled in')
    .argument('[version]', 'an older version, as it was published (a whole number)', parseWhole(1, VERSION_MAX))
    .option('--json', 'print one JSON line')
    .action((version: number | undefined, flags: Flags) => run((admin) => show(admin, version, flags)));
  rules
    .command('check')
    .description('say what is wrong with a file of rules, without any server')
    .argument('<file>', 'JSON file, as `rules show` prints it')
    .option('--json', 'print one JSON line')
    .action(check);
  rules
    .command('set')
    .description('publish the rules of a file: they replace the current ones')
    .argument('<file>', 'JSON file, as `rules show` prints it')
    .option(...WAIT_OPTION)
    .option('--json', 'print one JSON line')
    .action((file: string, flags: WaitFlags) => set(file, flags));
  rules
    .command('status')
    .description('where the newest rules are in force: in which api, and why not in the others')
    .option('--json', 'print one JSON line')
    .action((flags: Flags) => run((admin, connections) => status(admin, connections, flags)));
  rules
    .command('history')
    .description('who published rules, newest first')
    .option('--limit <count>', 'at most so many', parseWhole(1, LIST_MAX), LIST_DEFAULT)
    .option('--json', 'one JSON line per version')
    .action((flags: Flags & { limit: number }) => run((admin) => history(admin, flags)));
  return rules;
}

type Stores = Connections<'mysql' | 'redis'>;

async function run(task: (admin: RuleAdmin, connections: Stores) => Promise<void>): Promise<void> {
  const config = loadConfig(['mysql', 'redis'], process.env);
  await withConnections(config, createLog('rules', 'error'), async (connections) =>
    task(await openRules(connections), connections),
  );
}

async function show(admin: RuleAdmin, version: number | undefined, { json }: Flags): Promise<void> {
  const stored = version === undefined ? await admin.show() : await admin.find(version);
  if (stored === null) throw new CliError(`there is no version ${version} of the rules.`);
  print(JSON.stringify(stored, null, json ? 0 : 2));
}

/** Checks a file of rules. Needs no server, so that it can run where people review rules. */
function check(file: string, { json }: Flags): void {
  const { rules } = documentIn(file);
  const parsed = parseRules(rules);
  const reasons = 'reasons' in parsed ? parsed.reasons : [];
  if (json) print(JSON.stringify(checkedRulesBody(reasons)));
  if (reasons.length > 0) throw new CliError(wrong(file, reasons));
  if (!json) print(`${file}: nothing is wrong with it.`);
}

async function set(file: string, { json, wait }: WaitFlags): Promise<void> {
  const { version, rules } = documentIn(file);
  if (version === undefined) throw new CliError(`${file}: version must say which version these rules were made from.`);
  await run(async (admin, connections) => {
    const answer = await admin.publish(rules, version, operatorName());
    switch (answer.outcome) {
      case 'published': {
        const found = await findInForce(connections, answer.version, wait);
        if (json) print(JSON.stringify({ ...answer, ...inForceFields(found) }));
        const sentence = inForceSentence(found);
        if (!json) print(sentence);
        return;
      }
      case 'invalid':
        throw new CliError(wrong(file, answer.reasons));
      case 'version_conflict':
        throw new CliError(`${file} was made from version ${version}, and the newest is ${answer.version} now.`);
      default:
        return assertNever(answer);
    }
  });
}

async function status(admin: RuleAdmin, connections: Stores, { json }: Flags): Promise<void> {
  const { version } = await admin.show();
  const found = await findInForce(connections, version, STATUS_WAIT_S);
  if (json) print(JSON.stringify(inForceFields(found)));
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

const wrong = (file: string, reasons: readonly RuleReason[]): string =>
  [`${file} is invalid:`, ...reasons.map(({ path, message }) => `  ${path} ${message}`)].map(inLine).join('\n');

const line = tableLine(7, 24);
