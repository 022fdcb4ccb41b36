import { Command, InvalidArgumentError, Option } from 'commander';
import { DURABILITIES, type Durability } from '../deploy/local/stack/servers/server-spec.js';

/** In the order they run. `memory` is asked for with --memory. */
const SCENARIOS = [
  'win',
  'no-group-commit',
  'sold-out',
  'flash',
  'limits',
  'attack',
  'tokens',
  'cancel-loop',
  'layers',
  'paired',
  'consoles',
  'buckets',
  'reshard',
  'neighbours',
  'rebuild',
  'memory',
] as const;
export type ScenarioName = (typeof SCENARIOS)[number];
const DEFAULT_SCENARIOS: readonly ScenarioName[] = ['win', 'no-group-commit', 'sold-out', 'flash', 'limits'];

export interface BenchOptions {
  readonly scenarios: readonly ScenarioName[];
  /** Length of each measured load; null: each scenario has its own. */
  readonly seconds: number | null;
  readonly connections: number;
  /** Load before the first measurement; null: by what the stack and the programs have behind them. */
  readonly warmUpSeconds: number | null;
  /** Requests per second of `flash`, `reshard`, `neighbours` and `consoles`, and of `attack`, honest ones and others together; null: each has its own. */
  readonly rate: number | null;
  readonly generator: 'wrk' | 'autocannon' | 'best';
  /** Batches in flight that `no-group-commit` tries. */
  readonly inFlight: readonly number[];
  /** Whether all admission layers stand in front of `sold-out`. */
  readonly admission: 'off' | 'on';
  /** The other checkout of `paired`, with its build; null: none. */
  readonly against: string | null;
  /** How often `paired` and `consoles` measure both. */
  readonly pairs: number;
  /** Buckets of the sale of `buckets`, and that `reshard` makes. */
  readonly buckets: number;
  /** Orders of the sale of `rebuild`. */
  readonly orders: number;
  readonly keepStack: boolean;
  /** What the servers flush before they answer. */
  readonly durability: Durability;
  /** Replicas of Redis that every yes waits for. */
  readonly replicas: number;
  readonly dir: string;
  readonly json: boolean;
}

/** What commander makes of the command line. */
interface Flags extends Omit<BenchOptions, 'scenarios' | 'seconds' | 'warmUpSeconds' | 'against' | 'rate'> {
  readonly against?: string;
  readonly seconds?: number;
  readonly rate?: number;
  readonly warmUp?: number;
  readonly memory?: boolean;
}

const ABOUT: Record<ScenarioName, string> = {
  win: 'every buyer wins one unit of a large stock',
  'no-group-commit': 'the same with batches of one, with the best of --in-flight',
  'sold-out': '100 units, then only refusals; bare node:http beside it',
  flash: 'open arrival at --rate against 5,000 units',
  limits: 'each part alone: node:http, deduct, half message + commit, batch insert',
  attack: 'honest buyers alone, then among attackers: --rate in all, a fifth of it honest',
  tokens: 'a crowd fetches purchase tokens and never buys; honest buyers come later',
  'cancel-loop': 'accounts buy and cancel without end; honest buyers come later',
  layers: 'each admission layer alone, on and off: CPU per request',
  paired: 'CPU per purchase of the api, in turn with that of another build (--against)',
  consoles: 'what 50 open consoles cost the api while buyers come at --rate, slice by slice with and without',
  buckets: 'win on a sale of --buckets buckets, and on one of one bucket before and after',
  reshard: 'a sale is split into --buckets buckets under --rate requests/s: how long buyers get 503',
  neighbours: '20 sales sell while a large one is rebuilt, and while one of three Redis masters is frozen',
  rebuild: 'a sale of --orders orders among 20 times as many others is rebuilt: how long it is locked',
  memory: 'win for 60 s while the memory of the api is watched (--memory)',
};

const whole =
  (min: number, max: number) =>
  (text: string): number => {
    const value = Number(text);
    if (!/^\d+$/.test(text) || value < min || value > max) {
      throw new InvalidArgumentError(`must be a whole number from ${min} to ${max}.`);
    }
    return value;
  };

function inFlightList(text: string): number[] {
  const values = text.split(',').map(whole(1, 128));
  if (values.length > 8) throw new InvalidArgumentError('takes at most 8 values.');
  return values;
}

function scenarioName(text: string, earlier: readonly ScenarioName[] | undefined): ScenarioName[] {
  const name = SCENARIOS.find((scenario) => scenario === text);
  if (name === undefined) throw new InvalidArgumentError(`must be one of ${SCENARIOS.join(', ')}.`);
  return [...(earlier ?? []), name];
}

/** The command line as commander knows it. Every number has a maximum: load here is bounded in time. */
function benchCommand(): Command {
  const about = SCENARIOS.map((name) => `  ${name.padEnd(16)} ${ABOUT[name]}`).join('\n');
  return new Command('bench')
    .description(
      'Measures Seckill on this machine, on a stack of its own, and checks each scenario against Redis and MySQL.',
    )
    .argument(
      '[scenarios...]',
      `any of ${SCENARIOS.join(', ')} (default: ${DEFAULT_SCENARIOS.join(', ')})`,
      scenarioName,
    )
    .option('--seconds <s>', 'length of each load (default: its own)', whole(1, 600))
    .option('--connections <n>', 'keep-alive connections', whole(1, 4096), 512)
    .option('--warm-up <s>', 'load before measuring (default: 80 for a fresh broker, else 10)', whole(0, 120))
    .option(
      '--rate <n>',
      'requests per second of flash (10000), reshard (5000), of attack (2000), neighbours (600) and consoles (100) in all',
      whole(10, 50_000),
    )
    .option('--in-flight <list>', 'values that no-group-commit tries', inFlightList, [32, 64, 128])
    .addOption(
      new Option('--admission <state>', 'all admission layers in front of sold-out')
        .choices(['off', 'on'])
        .default('off'),
    )
    .option('--against <folder>', 'checkout that paired compares with, after `npm run build` in it')
    .option('--pairs <n>', 'how often paired and consoles measure both', whole(1, 100), 10)
    .option('--buckets <n>', 'buckets of the sale of `buckets`, and that `reshard` makes', whole(2, 64), 8)
    .option('--orders <n>', 'orders of the sale of rebuild', whole(1_000, 10_000_000), 1_000_000)
    .option('--memory', 'win for 60 s, with the memory of the api sampled each second')
    .addOption(
      new Option('--generator <name>', 'load generator').choices(['best', 'wrk', 'autocannon']).default('best'),
    )
    .addOption(
      new Option('--durability <level>', 'what an answer of the servers outlives')
        .choices(DURABILITIES)
        .default('process'),
    )
    .option('--replicas <n>', 'replicas of Redis, started beside it, that every yes waits for', whole(0, 2), 0)
    .option('--keep-stack', 'leave the servers running for the next run', false)
    .option('--dir <folder>', 'folder of the stack instance', '.stack-bench')
    .option('--json', 'print one JSON document instead of the table', false)
    .addHelpText('after', `\nScenarios:\n${about}\n\nExit codes: 0 done, 1 failed or an order was lost, 2 usage.`);
}

/**
 * Reads the command line.
 * @param onExit called with the exit code when the command line ends here, with help or an error; must not return
 */
export function parseOptions(args: readonly string[], onExit: (code: number) => never): BenchOptions {
  const command = benchCommand().exitOverride((error) => onExit(error.exitCode === 0 ? 0 : 2));
  command.showHelpAfterError('(add --help to see what this command takes)');
  command.parse([...args], { from: 'user' });
  const { seconds, rate, warmUp, memory, against, ...rest } = command.opts<Flags>();
  const scenarios = chosen((command.processedArgs[0] as ScenarioName[] | undefined) ?? [], memory === true);
  if (scenarios.includes('paired') && against === undefined) command.error('error: paired needs --against <folder>');
  const own = { seconds: seconds ?? null, rate: rate ?? null, warmUpSeconds: warmUp ?? null, against: against ?? null };
  return { ...rest, ...own, scenarios };
}

function chosen(named: readonly ScenarioName[], memory: boolean): ScenarioName[] {
  const wanted = new Set<ScenarioName>(named.length === 0 && !memory ? DEFAULT_SCENARIOS : named);
  if (memory) wanted.add('memory');
  return SCENARIOS.filter((name) => wanted.has(name));
}
