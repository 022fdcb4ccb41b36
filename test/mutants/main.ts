import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { bootOwnStack } from '../chaos/own-stacks.js';
import { buildIfOlder } from '../chaos/harness/commands.js';
import { closeConnections } from '../chaos/harness/http.js';
import { openControls } from '../chaos/harness/stack-controls.js';
import { reportStackError } from '../../deploy/local/stack-command.js';
import { progressStyle, seconds, showProgress } from '../../deploy/local/stack-progress.js';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';
import { SERVER_NAMES } from '../../deploy/local/stack/servers/server-spec.js';
import type { Stack } from '../../deploy/local/stack/stack.js';
import { editedFiles, StaleMutant } from './mutant-build.js';
import { MUTANTS, type Mutant } from './mutants.js';
import { reportPage, saidShown, table, totalLine } from './report.js';
import { runControl, runMutant, type MutantResult, type Site } from './run-mutant.js';

const USAGE = `npm run chaos:mutants -- [mutant…] [--list] [--control] [--json] [--report FILE]

Plants one bug after the other in a copy of the programs, and runs the row of the fault matrix that has to notice it, on
servers of its own. Nothing of the checkout is changed.

  --list         the mutants, and stop
  --control      each row on sound programs first: it must be green there
  --json         one JSON line per mutant
  --report FILE  writes a page of markdown too

Exit codes: 0 every mutant was caught, 1 one was not, 2 used wrongly or a mutant is stale.`;

const DIR = join(REPO_DIR, '.stack-chaos-mutants');
const EXIT_MISSED = 1;
const EXIT_USAGE = 2;

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    list: { type: 'boolean', default: false },
    control: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    report: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});
const unknown = positionals.filter((name) => !MUTANTS.some((mutant) => mutant.name === name));
const chosen = MUTANTS.filter(({ name }) => positionals.length === 0 || positionals.includes(name));
if (flags.help) console.log(USAGE);
else if (unknown.length > 0) misused(`no such mutant: ${unknown.join(', ')}; --list shows them`);
else if (flags.list) for (const mutant of chosen) console.log(listed(mutant));
else await run();

function misused(why: string): void {
  console.error(`chaos:mutants: ${why}`);
  process.exitCode = EXIT_USAGE;
}

function listed({ name, invariants, rows, breaks }: Mutant): string {
  return `${name.padEnd(36)} ${(invariants.join(' ') || '–').padEnd(9)} ${rows.join(' ').padEnd(14)} ${breaks}`;
}

async function run(): Promise<void> {
  try {
    for (const mutant of chosen) editedFiles(mutant);
  } catch (error) {
    if (!(error instanceof StaleMutant)) throw error;
    return misused(error.message);
  }
  const startedMs = performance.now();
  await reportStackError(flags.json, async (signal) => {
    if (await buildIfOlder(signal)) say('The programs were built.');
    const { results, unsound } = await bootAndRun(signal);
    const total = totalLine(results);
    if (flags.json) console.log(JSON.stringify({ result: 'mutants', total, unsound }));
    else console.log(`\n${table(results)}\n\n${total}`);
    if (flags.report !== undefined) {
      const date = new Date().toISOString().slice(0, 16).replace('T', ' ') + ' UTC';
      writeFileSync(flags.report, reportPage(results, date, performance.now() - startedMs));
    }
    if (unsound.length > 0 || results.some(({ verdict }) => verdict !== 'caught')) process.exitCode = EXIT_MISSED;
  });
  // waits of a row that was given up may be left, and would hold the command for minutes
  process.exit();
}

interface Ran {
  readonly results: readonly MutantResult[];
  /** Rows that are red without any mutant. */
  readonly unsound: readonly string[];
}

async function bootAndRun(signal: AbortSignal): Promise<Ran> {
  const { stack, stop } = await showProgress(progressStyle(flags.json), ['artifacts', ...SERVER_NAMES], (onProgress) =>
    bootOwnStack(DIR, onProgress, signal),
  );
  const stray = (error: unknown): void => say(`An error of no row: ${String(error)}`);
  process.on('uncaughtException', stray).on('unhandledRejection', stray); // the servers must not be left running
  try {
    return await runOn(stack, signal);
  } finally {
    await stop();
    for (const left of ['data', 'builds']) rmSync(join(DIR, left), { recursive: true, force: true });
  }
}

async function runOn(stack: Stack, signal: AbortSignal): Promise<Ran> {
  const hands = await openControls(stack.dir, stack.env());
  const onRow = (row: string, seed: number): void => say(`  ${row}, seed ${seed} …`);
  const site = { stack: hands, env: { ...process.env, ...stack.env() }, signal, onRow };
  try {
    const unsound = flags.control ? await controls(site) : [];
    const results: MutantResult[] = [];
    for (const [index, mutant] of chosen.entries()) {
      say(`${index + 1} of ${chosen.length}: ${mutant.name}`);
      const result = await runMutant(mutant, site);
      results.push(result);
      tell(result);
    }
    return { results, unsound };
  } finally {
    closeConnections();
    await hands.close();
  }
}

async function controls(site: Site): Promise<string[]> {
  const unsound: string[] = [];
  for (const row of new Set(chosen.flatMap(({ rows }) => rows))) {
    const why = await runControl(row, 1, site);
    say(why === null ? `✓ ${row} is green on sound programs` : `✗ ${row} is red on sound programs: ${why}`);
    if (why !== null) unsound.push(row);
  }
  return unsound;
}

function tell(result: MutantResult): void {
  const { mutant, verdict, row, seed, said, tookMs, logs } = result;
  if (flags.json) {
    const { name, invariants } = mutant;
    console.log(JSON.stringify({ result: 'mutant', name, invariants, row, seed, verdict, said, tookMs }));
    return;
  }
  if (verdict === 'unproven') console.error(logs);
  console.log(`${verdict === 'caught' ? '✓' : '✗'} ${verdict} by ${row} in ${seconds(tookMs)}: ${saidShown(result)}`);
}

function say(line: string): void {
  if (!flags.json) console.log(line);
}
