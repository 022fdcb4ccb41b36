import { Argument, Command } from 'commander';
import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, existsSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { tryLock } from '../deploy/local/stack/lock.js';
import { openStack, type Stack } from '../deploy/local/stack/stack.js';
import { StackError } from '../deploy/local/stack/stack-error.js';
import { build } from './chaos/harness/commands.js';
import { prepareStack } from './chaos/own-stacks.js';

/**
 * `npm test`: every folder of test/, in the order of what it needs, on a stack of its own (other ports and another folder
 * than `npm start`). Ends with one line: `N passed, N failed`.
 */
const REPO = fileURLToPath(new URL('..', import.meta.url));
const STACK_DIR = join(REPO, '.stack-test');

/** Folders that need no server: they run while the stack of the others boots. */
const BARE = ['unit', 'guard'];
const ON_STACK = ['contract', 'lua', 'integration', 'scenario'];
/** They need none of ours either, and run while the contract suites wait for the timers of the broker. */
const BESIDE_CONTRACT = ['newcomer', 'simulation', 'hostile'];
const FOLDERS = [...BARE, ...BESIDE_CONTRACT, ...ON_STACK];
/** Their files share no name, so they run beside each other; those that wait longest begin. */
const PARALLEL = new Set(['contract']);
const BEGIN_WITH = ['purchase-channel', 'delivery-source', 'rocketmq-connection', 'held-delivery', 'order-channels'];

interface Counts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  readonly failures: readonly { readonly title: string; readonly reason: string }[];
}

const command = new Command('npm test --')
  .description('Runs the tests on a stack of its own; what `npm start` keeps is never touched.')
  .addArgument(new Argument('[folders...]', 'those of test/ to run; none: all').choices(FOLDERS))
  .option('-g, --grep <pattern>', 'only tests whose title matches')
  .option('-b, --bail', 'end a folder at its first failure')
  .addHelpText(
    'after',
    '\nunit, guard, simulation, hostile and newcomer run without the stack. The last line counts: N passed, N failed.\n' +
      'Exit codes: 0 all passed, 1 something failed or nothing ran, 2 used wrongly.',
  )
  .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : 2))
  .parse();
const wanted = command.args;
const { grep, bail } = command.opts<{ readonly grep?: string; readonly bail?: boolean }>();
const mochaArgs = [...(grep === undefined ? [] : ['--grep', grep]), ...(bail ? ['--bail'] : [])];
let counts: Counts = { passed: 0, failed: 0, skipped: 0, failures: [] };
const children = new Set<ChildProcess>();
const stopping = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    stopping.abort(new StackError('The tests were stopped.'));
    for (const child of children) child.kill('SIGTERM');
  });
}

const startedMs = Date.now();
const chosen = (folders: readonly string[]): string[] =>
  folders.filter((folder) => wanted.length === 0 || wanted.includes(folder));
const [bare, beside, onStack] = [chosen(BARE), chosen(BESIDE_CONTRACT), chosen(ON_STACK)];
const bareEnd = runFolders(bare, process.env);
if (onStack.length > 0) await runOnStack(onStack, bareEnd);
else await bareEnd.then(() => runFolders(beside, process.env));
const { passed, failed, skipped, failures } = counts;
// said again where it is seen: hundreds of lines may stand between a failure and the end
for (const { title, reason } of failures) console.log(`FAILED ${title}\n  ${reason.split('\n')[0]}`);
console.log(`took ${Math.round((Date.now() - startedMs) / 1000)} s`);
console.log(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`);
process.exit(failed > 0 || passed === 0 || stopping.signal.aborted ? 1 : 0);

/** @param before what runs while the stack boots */
async function runOnStack(folders: readonly string[], before: Promise<void>): Promise<void> {
  const lock = tryLock(`${STACK_DIR}.lock`);
  if ('heldBy' in lock) {
    addFailure('npm test', `Process ${lock.heldBy} runs these tests already; wait for its end.`);
    return;
  }
  const news = holdNotifications(before);
  // what an earlier run left is removed, so that no test depends on it
  await openStack({ dir: STACK_DIR, ports: 'free' }).down({ signal: 'SIGKILL' });
  rmSync(STACK_DIR, { recursive: true, force: true });
  const stack = openStack({
    dir: STACK_DIR,
    ports: 'free',
    onProgress: ({ step, state, text }) => {
      if (state === 'done') news(`  ${step}: ${text}`);
    },
  });
  try {
    await Promise.all([boot(stack), build(stopping.signal)]);
    await before;
    const env = { ...process.env, ...stack.env(), SECKILL_TEST_STACK: stack.dir };
    await Promise.all([runFolders(folders.slice(0, 1), env), ...beside.map(runUnseen)]);
    await runFolders(folders.slice(1), env);
  } catch (error) {
    if (!(error instanceof StackError)) throw error;
    addFailure('the stack of the tests', error.message);
  } finally {
    await stack.down({ signal: 'SIGKILL' }); // its data is not needed again
    lock.release();
  }
}

async function boot(stack: Stack): Promise<void> {
  await stack.up({ topics: false, signal: stopping.signal });
  await prepareStack(stack);
}

/** Prints lines at once, but those of a time when something else prints only afterwards. */
function holdNotifications(busy: Promise<void>): (line: string) => void {
  let held: string[] | null = [];
  void busy.then(() => {
    for (const line of held ?? []) console.log(line);
    held = null;
  });
  return (line) => {
    if (held === null) console.log(line);
    else held.push(line);
  };
}

/** @param output where mocha writes: a file descriptor, or to the terminal */
async function runFolders(
  folders: readonly string[],
  env: NodeJS.ProcessEnv,
  output: number | 'inherit' = 'inherit',
): Promise<void> {
  for (const folder of folders) {
    const files = testFiles(folder);
    if (stopping.signal.aborted || files.length === 0) continue;
    if (output === 'inherit') console.log(`\n== ${folder}`);
    add(await runMocha(files, PARALLEL.has(folder) ? ['--parallel', '--jobs', '5'] : [], env, output));
  }
}

/** Runs beside others; what it wrote is shown at its end. */
async function runUnseen(folder: string): Promise<void> {
  const logFolder = mkdtempSync(join(tmpdir(), 'seckill-beside-'));
  const logFile = join(logFolder, folder);
  const output = openSync(logFile, 'a');
  await runFolders([folder], process.env, output);
  closeSync(output);
  console.log(`\n== ${folder}, ran beside\n${readFileSync(logFile, 'utf8')}`);
  rmSync(logFolder, { recursive: true, force: true });
}

function testFiles(folder: string): string[] {
  const path = join(REPO, 'test', folder);
  if (!existsSync(path)) return [];
  const names = readdirSync(path, { recursive: true, encoding: 'utf8' });
  const rank = (name: string): number => (BEGIN_WITH.includes(name.slice(0, -'.test.ts'.length)) ? 0 : 1);
  return names
    .filter((name) => name.endsWith('.test.ts'))
    .sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1))
    .map((name) => join('test', folder, name));
}

/** One process per folder: a test that kills or leaks cannot reach the next folder. */
async function runMocha(
  files: readonly string[],
  options: readonly string[],
  env: NodeJS.ProcessEnv,
  output: number | 'inherit',
): Promise<Counts> {
  const folder = mkdtempSync(join(tmpdir(), 'seckill-test-'));
  const countFile = join(folder, 'counts.json');
  // not bin/mocha.js, which starts this one as a child of its own that would outlive a SIGTERM
  const mocha = join(REPO, 'node_modules/mocha/lib/cli/cli.js');
  const reporter = join(REPO, 'test/helpers/counting-reporter.cjs');
  const args = ['--import', 'tsx', mocha, '--reporter', reporter, ...options, ...mochaArgs, ...files];
  const code = await runChild(args, { ...env, SECKILL_TEST_COUNTS: countFile }, output);
  try {
    return JSON.parse(readFileSync(countFile, 'utf8')) as Counts;
  } catch {
    const failures = [{ title: files.join(' '), reason: `mocha ended with ${code} before it could count` }];
    return { passed: 0, failed: 1, skipped: 0, failures };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** @returns its exit code */
async function runChild(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  output: number | 'inherit' = 'inherit',
): Promise<number | null> {
  const child = spawn(process.execPath, args, { cwd: REPO, env, stdio: ['ignore', output, output] });
  children.add(child);
  const code = await new Promise<number | null>((resolve) => child.once('exit', resolve));
  children.delete(child);
  return code;
}

function add(more: Counts): void {
  counts = {
    passed: counts.passed + more.passed,
    failed: counts.failed + more.failed,
    skipped: counts.skipped + more.skipped,
    failures: [...counts.failures, ...more.failures],
  };
}

/** What failed before or beside the tests themselves. */
function addFailure(title: string, reason: string): void {
  add({ passed: 0, failed: 1, skipped: 0, failures: [{ title, reason }] });
}
