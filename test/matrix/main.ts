import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { Command, Option } from 'commander';
import { runCommandLine } from '../../src/cli/run-command-line.js';
import { withoutUndefined } from '../../src/core/without-undefined.js';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';
import { StackError } from '../../deploy/local/stack/stack-error.js';
import { chosenIn, versionOptions, wantedVersions, type Versions } from '../../deploy/local/stack/versions.js';
import { readResults, resultsSetting } from '../runner/results.js';
import { ensureNode, NODE_VERSIONS, type NodeVersion } from './node-versions.js';
import { countsOf, markdownTable, resultOf, type RowResult, type TestRun } from './results.js';
import {
  nameOf,
  rowOf,
  ROWS,
  runsOf,
  settingsOf,
  SHORT_SUITES,
  SUITES,
  suitesOf,
  type Row,
  type Suite,
} from './rows.js';

interface MatrixFlags extends Partial<Versions> {
  readonly node?: NodeVersion;
  readonly suites?: Suite[];
  readonly short?: boolean;
}

const TEST = join(REPO_DIR, 'test/run.mjs');

const HELP = `
Examples:
  npm run test:matrix                                   every row; takes hours
  npm run test:matrix -- --mysql 8.0 --redis valkey     one row
  npm run test:matrix -- --node 22 --suites unit        a part of a row
  npm run test:matrix -- --mysql 8.0 --short            the contracts of MySQL, and one purchase from the click to its order

What is not chosen is as in \`npm test\`. Servers and Node are fetched at the first time; servers of your own are named by
SECKILL_MYSQLD, SECKILL_REDIS_SERVER and SECKILL_ROCKETMQ_LIB. Scenarios: of each program one that dies at work, and of each server one.
It ends with a table in Markdown and a line that counts: N passed, N failed.
Exit codes: 0 all passed, 1 something failed or nothing ran, 2 wrong usage.`;

const matrix = new Command('npm run test:matrix --')
  .description('Runs the tests on other servers, and on other versions of Node.')
  .addOption(
    new Option('--node <version>', 'that tests and programs run on (default: this one)').choices(NODE_VERSIONS),
  )
  .addOption(new Option('--suites <suites...>', 'suites to run (default: all suites of a row)').choices(SUITES))
  .option('--short', 'the contracts of MySQL and one purchase')
  .addHelpText('after', HELP)
  .action(run);
for (const option of versionOptions()) matrix.addOption(option);

const stopping = new AbortController();

await runCommandLine(matrix, []);

async function run(flags: MatrixFlags): Promise<void> {
  const chosen = withoutUndefined({ ...wantedVersions(chosenIn(flags), process.env), node: flags.node });
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stopping.abort());
  const rows = Object.keys(chosen).length === 0 && flags.short !== true ? ROWS : [rowOf(chosen)];
  const ran: RowResult[] = [];
  for (const row of rows) {
    if (stopping.signal.aborted) break;
    ran.push(await runRow(row, flags));
  }
  show(ran);
}

async function runRow(row: Row, { suites, short = false }: MatrixFlags): Promise<RowResult> {
  const beganMs = Date.now();
  console.log(`\n==== ${nameOf(row)}${short ? ', short part' : ''}`);
  const wanted = short ? SHORT_SUITES : (suites ?? suitesOf(row));
  const runs: TestRun[] = [];
  try {
    const node = row.node === 'this' ? null : await ensureNode(row.node, (text) => console.log(text));
    for (const args of runsOf(wanted, short)) {
      if (stopping.signal.aborted) break;
      runs.push({
        title: `npm test -- ${args.join(' ')}`,
        ...(await runTests(args, settingsOf(row, process.env), node)),
      });
    }
  } catch (error) {
    if (!(error instanceof StackError)) throw error;
    runs.push({ title: nameOf(row), results: null, reason: error.message }); // the other rows still run
  }
  const endedAtMs = Date.now();
  return resultOf(runs, { row, short, commit: commit(), endedAtMs, tookMs: endedAtMs - beganMs });
}

/**
 * Runs `npm test` with these arguments in a separate process.
 * @param node folder of another Node, or null
 */
async function runTests(
  args: readonly string[],
  settings: NodeJS.ProcessEnv,
  node: string | null,
): Promise<Omit<TestRun, 'title'>> {
  const folder = mkdtempSync(join(tmpdir(), 'seckill-matrix-'));
  const file = join(folder, 'results.json');
  try {
    // tests find npm and other programs by PATH
    const path = node === null ? {} : { PATH: `${node}${delimiter}${settings.PATH ?? ''}` };
    const program = node === null ? process.execPath : join(node, 'node');
    const env = { ...settings, ...path, ...resultsSetting(file) };
    const child = spawn(program, [TEST, ...args], { cwd: REPO_DIR, env, stdio: ['ignore', 'inherit', 'inherit'] });
    const stop = (): void => void child.kill('SIGTERM');
    stopping.signal.addEventListener('abort', stop, { once: true });
    await new Promise<void>((resolve, reject) => {
      child.once('close', () => resolve());
      child.once('error', (cause) => reject(new StackError(`${program} does not run (${cause.message}).`, { cause })));
    });
    stopping.signal.removeEventListener('abort', stop);
    return { results: readResults(file), reason: 'it ended before it could count' };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function commit(): string {
  try {
    const git = (...args: string[]): string => execFileSync('git', args, { cwd: REPO_DIR, encoding: 'utf8' }).trim();
    return git('rev-parse', '--short=8', 'HEAD') + (git('status', '--porcelain') === '' ? '' : '+');
  } catch {
    return '?'; // not a git checkout
  }
}

function show(ran: readonly RowResult[]): void {
  for (const { row, failures } of ran) {
    for (const { title, reason } of failures)
      console.log(`FAILED on ${nameOf(row)}: ${title}\n  ${reason.split('\n')[0]}`);
  }
  console.log(`\n${markdownTable(ran)}\n`);
  const { passed, failed, skipped } = countsOf(ran);
  console.log(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`);
  if (failed > 0 || passed === 0 || stopping.signal.aborted) process.exitCode = 1;
}
