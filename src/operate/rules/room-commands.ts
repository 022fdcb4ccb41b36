import { Command, InvalidArgumentError } from 'commander';
import { assertNever } from '../../core/errors.js';
import { CliError } from '../../process/cli-error.js';
import { withConfigured } from '../../process/connections.js';
import { operatorName, parseSaleId, parseWhole, subcommand } from '../../process/options.js';
import { print } from '../../process/print.js';
import { ADMIT_MAX, type RoomAdmin } from './room-admin.js';
import { openRules, type RuleServices } from './services.js';
import { already } from './change-rules.js';
import { findInForce, inForceFields, inForceSentence, WAIT_OPTION, type Found } from './where-in-force.js';

interface Flags {
  readonly json?: boolean;
}

const RATE_MAX = 100_000;

const EXAMPLES = `
All apis share one waiting room per sale. Its rules are in \`seckill rules\`: mode, sales, order, rate.

Examples:
  seckill room rate 50          admits 50 buyers per second, in the waiting room of every sale
  seckill room rate 0           pauses: no buyer is admitted, and all keep their places
  seckill room admit 7 200      admits the next 200 buyers of sale 7 at once
  seckill room empty 7          ends all places of sale 7; its buyers join again

\`rate\` publishes a new version of the rules. \`admit\` and \`empty\` need Redis and MySQL, and are in the audit log.
Exit codes: 0 done, and a rate is in force in every running api; 1 not; 2 wrong usage. --wait 0 does not check the apis.`;

export function roomCommand(): Command {
  const room = new Command('room')
    .description('set the rate of the waiting rooms, let buyers in, or empty a room')
    .addHelpText('after', EXAMPLES);
  subcommand(room, 'rate', 'set how many buyers per second the waiting rooms admit; 0 pauses')
    .argument('<buyers>', 'buyers per second, 0 to 100000', parseRate)
    .option(...WAIT_OPTION)
    .option('--json', 'print one JSON line')
    .action((perSecond: number, flags: Flags & { wait: number }) =>
      run(({ room: admin, ruleReports }) =>
        setRate(admin, perSecond, flags, (version) => findInForce(ruleReports, version, flags.wait)),
      ),
    );
  subcommand(room, 'admit', 'admit the next buyers of a sale at once, in addition to the rate')
    .argument('<saleId>', 'the sale', parseSaleId)
    .argument('<buyers>', 'number of buyers', parseWhole(1, ADMIT_MAX))
    .option('--json', 'print one JSON line')
    .action((saleId: string, buyers: number, flags: Flags) =>
      run(({ room: admin }) => steerRoom(admin, saleId, buyers, flags)),
    );
  subcommand(room, 'empty', 'end all places of a sale')
    .argument('<saleId>', 'the sale', parseSaleId)
    .option('--json', 'print one JSON line')
    .action((saleId: string, flags: Flags) => run(({ room: admin }) => steerRoom(admin, saleId, 'all_out', flags)));
  return room;
}

const run = (task: (services: RuleServices) => Promise<void>): Promise<void> =>
  withConfigured('room', ['mysql', 'redis'], async (connections) => task(await openRules(connections)));

function parseRate(text: string): number {
  const rate = /^\d+(\.\d+)?$/.test(text) ? Number(text) : NaN;
  if (!(rate >= 0 && rate <= RATE_MAX)) throw new InvalidArgumentError(`must be a number from 0 to ${RATE_MAX}.`);
  return rate;
}

/** @param ask which apis follow a version @throws CliError when the rate was not set, or some api does not follow it */
export async function setRate(
  admin: RoomAdmin,
  admitPerSecond: number,
  { json }: Flags,
  ask: (version: number) => Promise<Found>,
): Promise<void> {
  const answer = await admin.setRate(admitPerSecond, operatorName());
  switch (answer.outcome) {
    case 'rate_set': {
      const found = await ask(answer.version);
      if (json) print(JSON.stringify({ ...answer, admitPerSecond, rules: inForceFields(found) }));
      else
        print(`Waiting rooms ${already(answer)}admit ${admitPerSecond} buyers per second (version ${answer.version}).`);
      const sentence = inForceSentence(found);
      if (!json) print(sentence);
      return;
    }
    case 'version_conflict':
      throw new CliError('someone else changed the rules at the same time; the rate is unchanged. Try again.');
    case 'rules_unfit':
      throw new CliError('this program cannot read the newest rules; `seckill rules status` says why.');
    default:
      return assertNever(answer);
  }
}

/** @throws CliError when no buyer has joined, or the sale has not opened */
export async function steerRoom(
  admin: RoomAdmin,
  saleId: string,
  admit: number | 'all_out',
  { json }: Flags,
): Promise<void> {
  const { word, buyers } = await admin.steer(saleId, admit, operatorName());
  switch (word) {
    case 'no_room':
      throw new CliError(`no buyer has joined a waiting room of sale ${saleId}.`);
    case 'not_open':
      throw new CliError(`sale ${saleId} has not opened; its waiting room admits no buyer yet.`);
    case 'admitted':
    case 'emptied': {
      const text = word === 'admitted' ? `Admitted ${buyers} buyers.` : `Ended the places of ${buyers} buyers.`;
      print(json ? JSON.stringify({ outcome: word, buyers }) : text);
      return;
    }
    default:
      return assertNever(word);
  }
}
