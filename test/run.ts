import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, existsSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { tryLock } from '../src/stack/lock.js';
import { openStack, type Stack } from '../src/stack/stack.js';
import { StackError } from '../src/stack/stack-error.js';
import { migrate } from '../src/mysql/migrate.js';

/**
 * `npm test [folder…] [-- --grep text]`: every folder of test/, in the order of what it needs, on a stack of its own
 * (other ports and another folder than `npm start`). Ends with one line: `N passed, N failed`.
 */
const REPO = fileURLToPath(new URL('..', import.meta.url));

/** Folders without a server first: a slip shows before anything is booted. */
const BARE = ['unit', 'guard'];
/**
 * Lanes run beside each other, each on a stack of its own. One, for now: on two cores a second broker makes checks and
 * redeliveries later than the scenarios wait for them.
 */
const LANES = [['contract', 'lua', 'integration', 'scenario']];
const FOLDERS = [...BARE, ...LANES.flat()];
/** Their files share no name, so they run beside each other on one stack. */
const PARALLEL = new Set(['contract']);

interface Counts {
  passed: number;
  failed: number;
  skipped: number;
  failures: readonly { title: string; reason: string }[];
}

const argv = process.argv.slice(2);
const wanted = argv.filter((arg) => FOLDERS.includes(arg));
const mochaArgs = argv.filter((arg) => !FOLDERS.includes(arg));
let counts: Counts = { passed: 0, failed: 0, skipped: 0, failures: [] };
const children = new Set<ChildProcess>();
let interrupted = false;
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    interrupted = true;
    for (const child of children) child.kill('SIGTERM');
  });
}

const startedMs = Date.now();
const chosen = (folders: readonly string[]): string[] =>
  folders.filter((folder) => wanted.length === 0 || wanted.includes(folder));
await runFolders(chosen(BARE), process.env, null);
const lanes = LANES.map(chosen).filter((folders) => folders.length > 0);
if (lanes.length > 0 && !interrupted) await runLanes(lanes);
const { passed, failed, skipped, failures } = counts;
// said again where it is seen: hundreds of lines may stand between a failure and the end
for (const { title, reason } of failures) console.log(`FAILED ${title}\n  ${reason.split('\n')[0]}`);
console.log(`took ${Math.round((Date.now() - startedMs) / 1000)} s`);
console.log(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`);
process.exit(failed > 0 || passed === 0 || interrupted ? 1 : 0);

/** The first lane is seen as it runs; what another one wrote is shown when it has ended. */
async function runLanes(all: readonly (readonly string[])[]): Promise<void> {
  const lock = tryLock(join(REPO, '.stack-test.lock'));
  if ('heldBy' in lock) {
    addFailure('npm test', `Process ${lock.heldBy} runs these tests already; wait for its end.`);
    return;
  }
  const logFolder = mkdtempSync(join(tmpdir(), 'seckill-lanes-'));
  const stacks: Stack[] = [];
  try {
    for (const [index] of all.entries())
      stacks.push(await freshStack(`.stack-test${index === 0 ? '' : `-${index + 1}`}`));
    const work = all.map(async (folders, index) => {
      const stack = stacks[index] as Stack;
      const logFile = index === 0 ? null : join(logFolder, `${index}.log`);
      const env = { ...process.env, ...stack.env(), SECKILL_TEST_STACK: stack.dir };
      await runFolders(folders, env, logFile);
      await stack.down();
      return logFile;
    });
    for (const lane of work) {
      const logFile = await lane;
      if (logFile !== null && existsSync(logFile)) process.stdout.write(readFileSync(logFile));
    }
  } catch (error) {
    if (!(error instanceof StackError)) throw error;
    addFailure('the stack of the tests', error.message);
  } finally {
    for (const stack of stacks) await stack.down();
    rmSync(logFolder, { recursive: true, force: true });
    lock.release();
  }
}

/** What an earlier run left is removed, so that no test depends on it. */
async function freshStack(name: string): Promise<Stack> {
  const dir = join(REPO, name);
  await openStack({ dir, ports: 'free' }).down();
  rmSync(dir, { recursive: true, force: true });
  const onProgress = ({ state, text }: { state: string; text: string }): void => {
    if (state === 'done') console.log(`  ${name}: ${text}`);
  };
  const stack = openStack({ dir, ports: 'free', onProgress });
  await stack.up();
  await migrate({ url: stack.env().MYSQL_URL });
  return stack;
}

/** @param logFile where the output goes; null: to the terminal */
async function runFolders(folders: readonly string[], env: NodeJS.ProcessEnv, logFile: string | null): Promise<void> {
  for (const folder of folders) {
    const files = testFiles(folder);
    if (interrupted || files.length === 0) continue;
    console.log(`\n== ${folder}${logFile === null ? '' : ': running beside, shown at the end'}`);
    add(await runMocha(files, PARALLEL.has(folder) ? ['--parallel', '--jobs', '4'] : [], env, logFile));
  }
}

function testFiles(folder: string): string[] {
  const path = join(REPO, 'test', folder);
  if (!existsSync(path)) return [];
  const names = readdirSync(path, { recursive: true, encoding: 'utf8' });
  return names
    .filter((name) => name.endsWith('.test.ts'))
    .sort()
    .map((name) => join('test', folder, name));
}

/** One process per folder: a test that kills or leaks cannot reach the next folder. */
async function runMocha(
  files: readonly string[],
  options: readonly string[],
  env: NodeJS.ProcessEnv,
  logFile: string | null,
): Promise<Counts> {
  const folder = mkdtempSync(join(tmpdir(), 'seckill-test-'));
  const countFile = join(folder, 'counts.json');
  // not bin/mocha.js, which starts this one as a child of its own that would outlive a SIGTERM
  const mocha = join(REPO, 'node_modules/mocha/lib/cli/cli.js');
  const reporter = join(REPO, 'test/helpers/counting-reporter.cjs');
  const args = ['--import', 'tsx', mocha, '--reporter', reporter, ...options, ...mochaArgs, ...files];
  const output = logFile === null ? 'inherit' : openSync(logFile, 'a');
  const child = spawn(process.execPath, args, {
    cwd: REPO,
    env: { ...env, SECKILL_TEST_COUNTS: countFile },
    stdio: ['ignore', output, output],
  });
  children.add(child);
  const code = await new Promise<number | null>((resolve) => child.once('exit', resolve));
  children.delete(child);
  if (typeof output === 'number') closeSync(output);
  try {
    return JSON.parse(readFileSync(countFile, 'utf8')) as Counts;
  } catch {
    const failures = [{ title: files.join(' '), reason: `mocha ended with ${code} before it could count` }];
    return { passed: 0, failed: 1, skipped: 0, failures };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
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
