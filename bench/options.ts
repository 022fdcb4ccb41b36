import { Command, InvalidArgumentError, Option } from 'commander';
import { DURABILITIES, type Durability } from '../deploy/local/stack/servers/server-spec.js';

const DEFAULT_SCENARIOS = ['win', 'no-group-commit', 'sold-out', 'flash', 'limits'] as const;
/** Scenarios in the order in which they run. --memory asks for `memory`. */
const SCENARIOS = [...DEFAULT_SCENARIOS, 'crowd', 'paired', 'fleet', 'memory'] as const;
export type ScenarioName = (typeof SCENARIOS)[number];

export interface BenchOptions {
  readonly scenarios: readonly ScenarioName[];
  /** Length of each measured load. Null: each scenario has its own. */
  readonly seconds: number | null;
  readonly connections: number;
  /** Load before the first measurement. Null: 80 s for a fresh broker, else 10 s. */
  readonly warmUpSeconds: number | null;
  /** Requests per second of `flash`. Null: its default. */
  readonly rate: number | null;
  /** Batches in flight that `no-group-commit` tries. */
  readonly inFlight: readonly number[];
  /** `on` puts all admission layers in front of `sold-out`. */
  readonly admission: 'off' | 'on';
  /** Built checkout, or setting, that `paired` compares with, or null. */
  readonly against: string | null;
  /** How often `paired` measures both. */
  readonly pairs: number;
  /** Buckets of the sales of `fleet`. */
  readonly buckets: number;
  /** Apis of `fleet`. */
  readonly apis: number;
  readonly keepStack: boolean;
  /** Writes to disk that the servers make before they answer. */
  readonly durability: Durability;
  /** Replicas of Redis that must have a purchase before it is accepted. */
  readonly replicas: number;
  readonly dir: string;
  readonly json: boolean;
}

/** The command line as commander reads it. */
interface Flags extends Omit<BenchOptions, 'scenarios' | 'seconds' | 'warmUpSeconds' | 'against' | 'rate'> {
  readonly against?: string;
  readonly seconds?: number;
  readonly rate?: number;
  readonly warmUp?: number;
  readonly memory?: boolean;
}

const ABOUT: Record<ScenarioName, string> = {
  win: 'every buyer gets one unit of a large stock',
  'no-group-commit': 'like win with batches of one purchase, and the best value of --in-flight',
  'sold-out': '100 units, then only refusals; compared with bare node:http',
  flash: 'requests at --rate against 5,000 units, sent on time even if answers are late',
  limits: 'measures each part alone: node:http, deduct, half message + commit, batch insert',
  crowd: 'each kind of read alone: the sale, an own purchase, pages, the waiting room',
  paired: 'CPU per purchase, beside another build or in turn with another setting (--against)',
  fleet: 'win on one api, then on --apis apis, with one bucket, --buckets buckets, and by lanes of buyers',
  memory: 'win for 60 s, with a sample of the memory of the api every second (--memory)',
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

/** Every number has a maximum, because load is bounded in time. */
function benchCommand(): Command {
  const about = SCENARIOS.map((name) => `  ${name.padEnd(16)} ${ABOUT[name]}`).join('\n');
  return new Command('bench')
    .description(
      'Measures Seckill on this machine with its own servers, and compares Redis and MySQL after each scenario.',
    )
    .argument(
      '[scenarios...]',
      `any of ${SCENARIOS.join(', ')} (default: ${DEFAULT_SCENARIOS.join(', ')})`,
      scenarioName,
    )
    .option('--seconds <s>', 'duration of each load (default: depends on the scenario)', whole(1, 600))
    .option('--connections <n>', 'keep-alive connections', whole(1, 4096), 512)
    .option('--warm-up <s>', 'load before measuring (default: 80 for a fresh broker, else 10)', whole(0, 120))
    .option('--rate <n>', 'requests per second of flash (default: 10000)', whole(10, 50_000))
    .option('--in-flight <list>', 'values for no-group-commit to try', inFlightList, [32, 64, 128])
    .addOption(
      new Option('--admission <state>', 'run sold-out with all admission layers').choices(['off', 'on']).default('off'),
    )
    .option('--against <other>', 'setting for paired, such as WITNESS=watch, or a checkout after `npm run build`')
    .option('--pairs <n>', 'number of slices of paired', whole(1, 100), 10)
    .option('--buckets <n>', 'number of buckets for the scenario fleet', whole(2, 64), 8)
    .option('--apis <n>', 'number of apis for the scenario fleet', whole(2, 16), 4)
    .option('--memory', 'win for 60 s, with the memory of the api sampled each second')
    .addOption(
      new Option('--durability <level>', 'failure that an answer of the servers survives')
        .choices(DURABILITIES)
        .default('process'),
    )
    .option(
      '--replicas <n>',
      'number of Redis replicas to start, which must store a purchase before it is accepted',
      whole(0, 2),
      0,
    )
    .option('--keep-stack', 'leave the servers running for the next run', false)
    .option('--dir <folder>', 'folder of the stack instance', '.stack-bench')
    .option('--json', 'print one JSON document instead of the table', false)
    .addHelpText(
      'after',
      `\nScenarios:\n${about}\n\nExit codes: 0 done, 1 failed or an order was lost, 2 wrong usage.`,
    );
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
  if (scenarios.includes('paired') && against === undefined) command.error('error: paired needs --against');
  const own = { seconds: seconds ?? null, rate: rate ?? null, warmUpSeconds: warmUp ?? null, against: against ?? null };
  return { ...rest, ...own, scenarios };
}

function chosen(named: readonly ScenarioName[], memory: boolean): ScenarioName[] {
  const wanted = new Set<ScenarioName>(named.length === 0 && !memory ? DEFAULT_SCENARIOS : named);
  if (memory) wanted.add('memory');
  return SCENARIOS.filter((name) => wanted.has(name));
}
