import { Command } from 'commander';
import { openRules } from '../../programs/operator.js';
import { withConnections, type Connections } from '../../process/connections.js';
import { loadConfig } from '../../core/config/load.js';
import { assertNever } from '../../core/errors.js';
import { fieldSentences } from '../../core/field-errors.js';
import {
  SwitchAdmin,
  type SwitchAnswer,
  type Unfit,
  readSwitchArguments,
  type SwitchChange,
  type SwitchRow,
} from './switches.js';
import { switchedBody, switchesBody } from './switch-routes.js';
import { createLog } from '../../process/telemetry.js';
import { CliError } from '../../process/cli-error.js';
import { operatorName } from '../../process/options.js';
import { print, inLine, tableLine } from '../../process/print.js';
import { findInForce, inForceFields, inForceSentence, WAIT_OPTION, type Found } from './print-in-force.js';

interface Flags {
  readonly percent?: string;
  /** In seconds. */
  readonly wait: number;
  readonly json?: boolean;
}

const EXAMPLES = `
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

Each switch is a new version of the rules: \`seckill rules history\` says who set it, \`seckill rules status\` where it is in force.
Exit codes: 0 done, and in force in every running api; 1 not; 2 wrong usage. --wait 0 does not check the apis.`;

export function switchCommand(): Command {
  return new Command('switch')
    .description('show the degradation levels, or set the level of one endpoint')
    .argument('[endpoint]', 'purchase, status, sale or order')
    .argument('[level]', 'L0 to L4')
    .option('--percent <share>', 'percentage of users, 0 to 100 (default: all)')
    .option(...WAIT_OPTION)
    .option('--json', 'print one JSON line')
    .addHelpText('after', EXAMPLES)
    .action(act);
}

async function act(
  endpoint: string | undefined,
  level: string | undefined,
  flags: Flags,
  command: Command,
): Promise<void> {
  if (endpoint === undefined) {
    if (flags.percent !== undefined) command.error('error: --percent needs an endpoint and a level');
    return run((admin) => show(admin, flags));
  }
  if (level === undefined) return command.error(`error: give a level for ${inLine(endpoint)}: L0 to L4`);
  const read = readSwitchArguments(endpoint, level, flags.percent);
  if (read.read === 'refused') {
    return command.error(`error: ${inLine(fieldSentences(read.errors))}`);
  }
  await run((admin, connections) =>
    set(admin, read.change, flags, (version) => findInForce(connections, version, flags.wait)),
  );
}

async function run(
  task: (admin: SwitchAdmin, connections: Connections<'mysql' | 'redis'>) => Promise<void>,
): Promise<void> {
  const config = loadConfig(['mysql', 'redis'], process.env);
  await withConnections(config, createLog('switch', 'error'), async (connections) =>
    task(new SwitchAdmin(await openRules(connections)), connections),
  );
}

/** @throws CliError when the rules cannot be read */
export async function show(admin: SwitchAdmin, { json }: Pick<Flags, 'json'>): Promise<void> {
  const found = await admin.show();
  if (found.outcome === 'rules_unfit') throw unfit(found);
  if (json) return print(JSON.stringify(switchesBody(found)));
  print(line('endpoint', 'level', 'percent', 'in force'));
  for (const row of found.switches) print(lineOf(row));
}

/** @param ask which apis follow a version @throws CliError when the switch was not set, or some api does not follow it */
export async function set(
  admin: SwitchAdmin,
  change: SwitchChange,
  { json }: Pick<Flags, 'json'>,
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

function switchedSentence({ row, version }: Extract<SwitchAnswer, { outcome: 'switched' }>): string {
  const { endpoint, level, percent, inForce } = row;
  const what = `${endpoint} is at ${level} for ${percent === 100 ? 'all' : `${percent} of 100 users`}`;
  const butOff = inForce ? '' : ', but has no effect, because degrade.mode of the rules is not "on"';
  return `${what}${butOff} (version ${version}).`;
}

const unfit = ({ reasons }: Unfit): CliError =>
  new CliError(
    ['this program cannot read the newest rules:', ...reasons.map(({ path, message }) => `  ${path} ${message}`)]
      .map(inLine)
      .join('\n'),
  );

const lineOf = ({ endpoint, level, percent, inForce }: SwitchRow): string =>
  line(endpoint, level, `${percent}`, inForce ? 'yes' : 'no');

const line = tableLine(9, 6, 8);
