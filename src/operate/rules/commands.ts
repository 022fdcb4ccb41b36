import { Command } from 'commander';
import { openRules } from '../../programs/operator.js';
import { withConnections, type Connections } from '../../process/connections.js';
import type { RulesDocument } from '../../contract/rules.js';
import { loadConfig } from '../../core/config/load.js';
import { assertNever } from '../../core/errors.js';
import { fieldSentences } from '../../core/field-errors.js';
import type { RuleAdmin } from './rule-admin.js';
import { parseRules, type RuleReason } from '../../admission/rules/rule-set.js';
import { checkedRulesBody, readRulesDocument, ruleChangeBody } from './routes.js';
import { createLog } from '../../process/telemetry.js';
import { CliError } from '../../process/cli-error.js';
import { operatorName, parseWhole } from '../../process/options.js';
import { isoTime, print, inLine, tableLine } from '../../process/print.js';
import { readText } from '../../process/read-text.js';
import { findInForce, inForceFields, inForceSentence, WAIT_OPTION } from './print-in-force.js';

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
A versioned document configures admission: lists, limits, signatures, waiting room, breakers.
Until rules are published, every request is admitted. docs/admission.md explains each part.

Examples:
  seckill rules show > rules.json        change it, then
  seckill rules check rules.json         finds errors, without a server
  seckill rules set rules.json           publishes the rules, and says where they are in force
  seckill rules set rules.json --wait 60 gives the apis a minute
  seckill rules status                   where the newest rules are in force
  seckill rules show 3 --json            version 3 as published
  seckill rules history --limit 5

The file holds {"version": …, "rules": {…}}; version is the version that you edited. If there is a newer version,
\`rules set\` changes nothing: run \`rules show\` again and repeat your change. Every api reports its version once a second.
Exit codes: 0 done, and in force in every running api; 1 not done or not in force (invalid rules, a newer version, an api that does
not follow, or no running api); 2 wrong usage. With --wait 0, exit code 0 means only that the rules are published.`;

export function rulesCommand(): Command {
  const rules = new Command('rules')
    .description('show, check and publish the admission rules')
    .addHelpText('after', EXAMPLES);
  rules
    .command('show')
    .description('print the newest rules with all defaults')
    .argument('[version]', 'an older version, printed as published (a whole number)', parseWhole(1, VERSION_MAX))
    .option('--json', 'print one JSON line')
    .action((version: number | undefined, flags: Flags) => run((admin) => show(admin, version, flags)));
  rules
    .command('check')
    .description('find the errors in a file of rules, without a server')
    .argument('<file>', 'JSON file in the format of `rules show`')
    .option('--json', 'print one JSON line')
    .action(check);
  rules
    .command('set')
    .description('publish the rules of a file, which replace the current rules')
    .argument('<file>', 'JSON file in the format of `rules show`')
    .option(...WAIT_OPTION)
    .option('--json', 'print one JSON line')
    .action((file: string, flags: WaitFlags) => set(file, flags));
  rules
    .command('status')
    .description('show which apis follow the newest rules, and why others do not')
    .option('--json', 'print one JSON line')
    .action((flags: Flags) => run((admin, connections) => status(admin, connections, flags)));
  rules
    .command('history')
    .description('show who published rules, newest first')
    .option('--limit <count>', 'maximum number of versions', parseWhole(1, LIST_MAX), LIST_DEFAULT)
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
  if (!json) print(`${file} is valid.`);
}

async function set(file: string, { json, wait }: WaitFlags): Promise<void> {
  const { version, rules } = documentIn(file);
  if (version === undefined) throw new CliError(`${file}: version must be the version that you edited.`);
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
        throw new CliError(`${file} was made from version ${version}, but the newest is ${answer.version} now.`);
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
