import { randomInt } from 'node:crypto';
import { Command } from 'commander';
import { parseWhole } from '../../src/process/options.js';
import type { DemoFlags } from './demo-command.js';
import type { OnCallFlags } from './on-call/command.js';
import type { ChaosFlags } from './run-command.js';
import type { SoakFlags, YearFlags } from './long/plan.js';
import type { LongFlags } from './long-command.js';

/** Each scenario starts its own programs, so more concurrent scenarios would end no sooner. */
const JOBS_DEFAULT = 2;
const SEED_MAX = 2 ** 31 - 1;
const SEEDS_MAX = 1000;
const SOAK_MINUTES_DEFAULT = 15;
/** The plan of a soak is kept in memory: a few MB for four hours. */
const SOAK_MINUTES_MAX = 240;
const FAULT_EVERY_S_DEFAULT = 20;
/** The sizes of a year of a busy shop. */
const YEAR = { sales: 3_000, orders: 5_000_000, large: 16, faults: 12, minutes: 120 };

/** Enough data for alerts that look back up to ten minutes. */
const DEMO_MINUTES_DEFAULT = 10;

/** Half of the orders expire in this time, and no alert may fire. */
const ORDINARY_MINUTES_DEFAULT = 10;

const EXIT_USAGE = 2;

export const EXAMPLES = `
Examples:
  npm run chaos -- list                 lists every fault, and what must hold
  npm run chaos -- run                  runs every scenario once; writes bench/chaos-report.md
  npm run chaos -- run T3 R             scenarios of T3 and of group R
  npm run chaos -- run T3 --seeds 20    with twenty seeds
  npm run chaos -- run T3 --seed 7      repeats a run with the same victim, moment and load
  npm run chaos -- run P4 --coupons 10000  10,000 coupons and 20,000 orders that race for them
  npm run chaos -- soak                 15 minutes of sales, each through its whole life, a random fault every 20 s
  npm run chaos -- year                 3,000 sales and 5,000,000 orders through their whole life, with faults
  npm run chaos -- demo                 ten minutes of npm start -- --traffic --faults, watched by a real Prometheus
  npm run chaos -- on-call              an hour on call: which alert fires for which fault, and who was refused

The commands start their own servers in .stack-chaos on free ports, and stop them at the end.
Exit codes: 0 passed, 1 something failed, 2 wrong usage.`;

/** Commands of `npm run chaos`: the fault matrix, and random faults. */
export function chaosCommands(): Command[] {
  const listCommand = new Command('list')
    .description('list the scenarios, what each breaks and what must hold')
    .action(list);
  const runCommand = new Command('run')
    .description('run scenarios on their own servers')
    .argument('[ids...]', 'ids (T3), names (T3/after_deduct) or groups (T); default all')
    .option('--seeds <count>', 'number of runs of each scenario, with consecutive seeds', parseWhole(1, SEEDS_MAX), 1)
    .option('--seed <seed>', 'the first seed; default random', parseWhole(0, SEED_MAX))
    .option(
      '--jobs <count>',
      'number of scenarios that run at the same time, if they break no shared server',
      parseWhole(1, 16),
      JOBS_DEFAULT,
    )
    .option(
      '--stacks <count>',
      'number of sets of servers to spread the scenarios over, 3 GB each',
      parseWhole(1, 8),
      1,
    )
    .option('--coupons <count>', 'coupons of P4, each wanted by two orders; default 200', parseWhole(25, 100_000))
    .option('--keep', 'keep the data of the servers, not only logs and op logs')
    .action(run);
  const soakCommand = new Command('soak')
    .description(
      'sell for some minutes with a random fault every few seconds: nothing leaks, and Redis and MySQL agree',
    )
    .option('--minutes <count>', 'duration of the sales', parseWhole(1, SOAK_MINUTES_MAX), SOAK_MINUTES_DEFAULT)
    .option('--fault-every-s <seconds>', 'pause after each fault', parseWhole(5, 600), FAULT_EVERY_S_DEFAULT)
    .option('--seed <seed>', 'draws the faults; default random', parseWhole(0, SEED_MAX))
    .option('--keep', 'keep the data of the servers, not only logs')
    .option('--report <file>', 'write the figures as a page of Markdown')
    .action(soak);
  const yearCommand = new Command('year')
    .description('thousands of sales through their whole life: nothing grows, and Redis and MySQL agree')
    .option('--sales <count>', 'number of sales', parseWhole(1, 100_000), YEAR.sales)
    .option('--orders <count>', 'number of orders over all sales', parseWhole(1, 100_000_000), YEAR.orders)
    .option(
      '--large <count>',
      'number of large sales, which share 40 % of the orders',
      parseWhole(0, 1_000),
      YEAR.large,
    )
    .option('--faults <count>', 'number of kills of programs and servers', parseWhole(0, 1_000), YEAR.faults)
    .option('--seed <seed>', 'draws sizes and faults; default random', parseWhole(0, SEED_MAX))
    .option('--minutes <count>', 'maximum duration of the sales', parseWhole(1, 1_440), YEAR.minutes)
    .option('--keep', 'keep the data of the servers, not only logs')
    .option('--report <file>', 'write the figures as a page of Markdown')
    .action(year);
  const demoCommand = new Command('demo')
    .description('npm start -- --traffic --faults under Prometheus: alerts fire and clear, boards have data')
    .option('--minutes <count>', 'duration', parseWhole(2, 1_440), DEMO_MINUTES_DEFAULT)
    .option('--keep', 'keep the data of the servers and of Prometheus')
    .action(demo);
  const onCallCommand = new Command('on-call')
    .description('one fault after another under Prometheus: the right alert fires and ends, and buyers hardly notice')
    .argument('[faults...]', 'parts of their names; default all')
    .option(
      '--ordinary-minutes <count>',
      'minutes without a fault before the first one',
      parseWhole(0, 60),
      ORDINARY_MINUTES_DEFAULT,
    )
    .option('--keep', 'keep the data of the servers and of Prometheus')
    .option('--json', 'print the result as JSON')
    .action(onCall);
  return [listCommand, runCommand, soakCommand, yearCommand, demoCommand, onCallCommand];
}

// Scenarios are imported on first use, so that `--help` starts without them.

async function list(): Promise<void> {
  const { SCENARIOS } = await import('./scenarios/list.js');
  for (const scenario of SCENARIOS) {
    const skip = scenario.skip?.() ?? null;
    console.log(`${scenario.name.padEnd(24)} ${scenario.title}${skip === null ? '' : ` (skipped: ${skip})`}`);
  }
}

async function run(ids: readonly string[], flags: ChaosFlags & { readonly seed?: number }): Promise<void> {
  if (flags.coupons !== undefined) process.env.COUPONS = String(flags.coupons);
  const [{ chooseScenarios }, { SCENARIOS }, { runChaos }] = await Promise.all([
    import('./scenario.js'),
    import('./scenarios/list.js'),
    import('./run-command.js'),
  ]);
  const { chosen, unknown } = chooseScenarios(SCENARIOS, ids);
  if (unknown.length > 0) {
    console.error(`chaos: there is no scenario ${unknown.join(', ')}; npm run chaos -- list shows all.`);
    process.exitCode = EXIT_USAGE;
    return;
  }
  const first = flags.seed ?? randomInt(SEED_MAX - SEEDS_MAX);
  const seeds = Array.from({ length: flags.seeds }, (_, index) => first + index);
  await runChaos(chosen, seeds, flags, ids.length === 0);
}

type Drawn<Flags> = Omit<Flags, 'seed'> & { readonly seed?: number } & LongFlags;

async function soak(flags: Drawn<SoakFlags>): Promise<void> {
  const [{ runLong }, { soakPlan }] = await Promise.all([import('./long-command.js'), import('./long/plan.js')]);
  const { minutes, faultEveryS, seed = randomInt(SEED_MAX) } = flags;
  const again = `npm run chaos -- soak --minutes ${minutes} --fault-every-s ${faultEveryS} --seed ${seed}`;
  await runLong(soakPlan({ minutes, faultEveryS, seed }), again, flags);
}

async function year(flags: Drawn<YearFlags>): Promise<void> {
  const [{ runLong }, { yearPlan }] = await Promise.all([import('./long-command.js'), import('./long/plan.js')]);
  const { sales, orders, large, faults, seed = randomInt(SEED_MAX) } = flags;
  const again = `npm run chaos -- year --sales ${sales} --orders ${orders} --large ${large} --faults ${faults} --seed ${seed}`;
  await runLong(yearPlan({ ...flags, seed }), again, flags);
}

async function demo(flags: DemoFlags): Promise<void> {
  const { runDemo } = await import('./demo-command.js');
  await runDemo(flags);
}

async function onCall(faults: readonly string[], flags: OnCallFlags): Promise<void> {
  const { runOnCall } = await import('./on-call/command.js');
  await runOnCall(faults, flags);
}
