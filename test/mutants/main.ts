import { Command, Option } from 'commander';
import { buildIfOlder } from '../chaos/harness/commands.js';
import { reportStackError } from '../../deploy/local/stack-command.js';
import { seconds } from '../../deploy/local/stack-progress.js';
import { onOwnServers, runByChaos, runControl } from './by-chaos.js';
import { catchInSimulation, findSeed, keepSeed, traceMutant } from './by-simulation.js';
import { MUTANTS, type Mutant } from './mutants.js';
import { editedFiles, StaleMutant } from './plant.js';
import { saidShown, totalLine, type MutantResult } from './report.js';

interface Flags {
  readonly by?: 'simulation' | 'chaos';
  readonly list?: boolean;
  readonly control?: boolean;
  readonly seed?: string;
  readonly findSeeds?: boolean;
}

const EXIT_MISSED = 1;
const EXIT_USAGE = 2;

const command = new Command('npm run mutants --')
  .description(
    'Plants one bug after the other in a copy of the programs and shows that it is noticed, by the simulation or by a chaos\n' +
      'scenario on servers of its own. The checkout is not changed.',
  )
  .argument('[names...]', 'mutants; default: all')
  .addOption(new Option('--by <who>', 'only the simulation, or only chaos').choices(['simulation', 'chaos']))
  .option('--list', 'list the mutants and exit')
  .option('--control', 'first run each chaos scenario on programs without a bug, where it must be green')
  .option('--seed <n>', 'print the trace of one seed of the simulation with one mutant')
  .option('--find-seeds', 'after a change of the programs: search the seed that notices each mutant, and write it down')
  .addHelpText(
    'after',
    '\nExit codes: 0 every mutant was caught, 1 one was not, 2 wrong usage, or a mutant is stale (its text has changed).',
  )
  .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : EXIT_USAGE))
  .parse();
const names = command.args;
const flags = command.opts<Flags>();

const unknown = names.filter((name) => !MUTANTS.some((mutant) => mutant.name === name));
const named = MUTANTS.filter(({ name }) => names.length === 0 || names.includes(name));
const bySimulation = flags.by === 'chaos' ? [] : named.filter(({ simulation }) => simulation);
const byChaos = flags.by === 'simulation' ? [] : named.filter(({ chaos }) => chaos !== undefined);
const [only] = bySimulation;
if (unknown.length > 0) misused(`there is no mutant ${unknown.join(', ')}; --list shows all`);
else if (bySimulation.length + byChaos.length === 0) misused(`${flags.by} is not asked to notice ${names.join(', ')}`);
else if (flags.list) for (const mutant of new Set([...bySimulation, ...byChaos])) console.log(listed(mutant));
else if (flags.seed === undefined) await run();
else if (names.length === 1 && only !== undefined) console.log(await traceMutant(only, Number(flags.seed)));
else misused('--seed wants one mutant that the simulation notices');

function misused(why: string): void {
  console.error(`mutants: ${why}`);
  process.exitCode = EXIT_USAGE;
}

function listed({ name, simulation, chaos, breaks }: Mutant): string {
  const by = [simulation ? 'simulation' : '', ...(chaos?.scenarios ?? [])].filter((one) => one !== '').join(', ');
  return `${name.padEnd(40)} ${by.padEnd(26)} ${breaks}`;
}

/** Finds the seeds of two mutants at a time, one per core. A rare mutant takes minutes. */
async function findSeeds(): Promise<void> {
  const waiting = [...bySimulation];
  const search = async (): Promise<void> => {
    for (let mutant = waiting.shift(); mutant !== undefined; mutant = waiting.shift()) {
      const seed = await findSeed(mutant);
      if (seed === null) process.exitCode = EXIT_MISSED;
      else keepSeed(mutant, seed);
      const before = mutant.simulation?.fromSeed;
      const was = seed === before ? '' : `, was ${before}`;
      console.log(seed === null ? `✗ ${mutant.name}: no seed notices it` : `✓ ${mutant.name}: seed ${seed}${was}`);
    }
  };
  await Promise.all([search(), search()]);
}

async function run(): Promise<void> {
  try {
    for (const mutant of named) editedFiles(mutant);
  } catch (error) {
    if (!(error instanceof StaleMutant)) throw error;
    return misused(error.message);
  }
  if (flags.findSeeds) return findSeeds();
  await reportStackError(false, async (signal) => {
    const results: MutantResult[] = [];
    for (const mutant of bySimulation) results.push(shown(await runBySimulation(mutant, signal)));
    const unsound = byChaos.length > 0 ? await runAllByChaos(results, signal) : [];
    console.log(`\n${totalLine(results)}`);
    if (unsound.length > 0 || results.some(({ verdict }) => verdict !== 'caught')) process.exitCode = EXIT_MISSED;
  });
  // waits of an abandoned scenario would keep the command alive for minutes
  process.exit();
}

async function runBySimulation(mutant: Mutant, signal: AbortSignal): Promise<MutantResult> {
  const startedMs = performance.now();
  const broken = await catchInSimulation(mutant, signal);
  const tookMs = Math.round(performance.now() - startedMs);
  const none = { mutant, by: 'simulation' as const, logs: '', tookMs };
  if (broken === null) return { ...none, verdict: 'missed', where: 'every promise', seed: null, said: '' };
  const [said = ''] = broken.what.split('\n');
  return { ...none, verdict: 'caught', where: broken.code, seed: broken.seed, said };
}

/** @returns scenarios that are red without a bug */
async function runAllByChaos(results: MutantResult[], signal: AbortSignal): Promise<string[]> {
  await buildIfOlder();
  return onOwnServers(signal, async (site) => {
    const unsound: string[] = [];
    for (const name of flags.control ? new Set(byChaos.flatMap(({ chaos }) => chaos?.scenarios ?? [])) : []) {
      const why = await runControl(name, 1, site);
      console.log(why === null ? `✓ ${name} is green without a bug` : `✗ ${name} is red without a bug: ${why}`);
      if (why !== null) unsound.push(name);
    }
    for (const mutant of byChaos) {
      console.log(mutant.name);
      const first = await runByChaos(mutant, site);
      // a busy machine may cause another failure than the bug, so tries once more
      results.push(shown(first.verdict === 'unproven' ? await runByChaos(mutant, site) : first));
    }
    return unsound;
  });
}

function shown(result: MutantResult): MutantResult {
  const { mutant, by, verdict, where, seed, said, tookMs, logs } = result;
  if (verdict === 'unproven') console.error(logs);
  const sign = verdict === 'caught' ? '✓' : '✗';
  console.log(`${sign} ${mutant.name}: ${verdict} by ${by} in ${seconds(tookMs)}, seed ${seed ?? '–'}: ${where}`);
  if (said !== '') console.log(`    ${saidShown(result)}`);
  return result;
}
