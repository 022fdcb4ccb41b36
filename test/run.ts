import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
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
const STACK_DIR = join(REPO, '.stack-test');

/** Folders without a server first: a slip shows before anything is booted. */
const PHASES = [
  { folders: ['unit', 'guard'], stack: false },
  { folders: ['contract', 'lua', 'integration', 'scenario'], stack: true },
] as const;
/** Their files share no name and mostly wait, for timers of the broker of up to a minute. */
const PARALLEL = new Set(['contract']);
const FOLDERS = PHASES.flatMap((phase) => phase.folders) as readonly string[];

interface Counts {
  passed: number;
  failed: number;
  skipped: number;
}

const argv = process.argv.slice(2);
const wanted = argv.filter((arg) => FOLDERS.includes(arg));
const mochaArgs = argv.filter((arg) => !FOLDERS.includes(arg));
const counts: Counts = { passed: 0, failed: 0, skipped: 0 };
let child: ChildProcess | null = null;
let interrupted = false;
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    interrupted = true;
    child?.kill('SIGTERM');
  });
}

const startedMs = Date.now();
for (const phase of PHASES) {
  const folders = phase.folders.filter((folder) => wanted.length === 0 || wanted.includes(folder));
  if (interrupted || folders.length === 0) continue;
  if (phase.stack) await withStack((env) => runFolders(folders, env));
  else await runFolders(folders, process.env);
}
const { passed, failed, skipped } = counts;
console.log(`took ${Math.round((Date.now() - startedMs) / 1000)} s`);
console.log(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`);
process.exit(failed > 0 || passed === 0 || interrupted ? 1 : 0);

/** A fresh instance: what an earlier run left is removed, so that no test depends on it. */
async function withStack(work: (env: NodeJS.ProcessEnv) => Promise<void>): Promise<void> {
  const onProgress = ({ state, text }: { state: string; text: string }): void => {
    if (state === 'done') console.log(`  stack: ${text}`);
  };
  const lock = tryLock(`${STACK_DIR}.lock`);
  if ('heldBy' in lock) {
    console.error(`Process ${lock.heldBy} runs these tests already; wait for its end.`);
    counts.failed++;
    return;
  }
  const old: Stack = openStack({ dir: STACK_DIR, ports: 'free' });
  await old.down();
  rmSync(STACK_DIR, { recursive: true, force: true });
  const stack = openStack({ dir: STACK_DIR, ports: 'free', onProgress });
  try {
    await stack.up();
    const env = { ...process.env, ...stack.env(), SECKILL_TEST_STACK: STACK_DIR };
    await migrate({ url: stack.env().MYSQL_URL });
    await work(env);
  } catch (error) {
    if (!(error instanceof StackError)) throw error;
    console.error(error.message);
    counts.failed++;
  } finally {
    await stack.down();
    lock.release();
  }
}

async function runFolders(folders: readonly string[], env: NodeJS.ProcessEnv): Promise<void> {
  for (const folder of folders) {
    const files = testFiles(folder);
    if (interrupted || files.length === 0) continue;
    console.log(`\n== ${folder}`);
    add(await runMocha(files, PARALLEL.has(folder) ? ['--parallel', '--jobs', '4'] : [], env));
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
async function runMocha(files: readonly string[], options: readonly string[], env: NodeJS.ProcessEnv): Promise<Counts> {
  const folder = mkdtempSync(join(tmpdir(), 'seckill-test-'));
  const countFile = join(folder, 'counts.json');
  // not bin/mocha.js, which starts this one as a child of its own that would outlive a SIGTERM
  const mocha = join(REPO, 'node_modules/mocha/lib/cli/cli.js');
  const reporter = join(REPO, 'test/helpers/counting-reporter.cjs');
  const args = ['--import', 'tsx', mocha, '--reporter', reporter, ...options, ...mochaArgs, ...files];
  child = spawn(process.execPath, args, {
    cwd: REPO,
    env: { ...env, SECKILL_TEST_COUNTS: countFile },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const code = await new Promise<number | null>((resolve) => child?.once('exit', resolve));
  try {
    return JSON.parse(readFileSync(countFile, 'utf8')) as Counts;
  } catch {
    console.error(`mocha ended with ${code} before it could count`);
    return { passed: 0, failed: 1, skipped: 0 };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function add(more: Counts): void {
  counts.passed += more.passed;
  counts.failed += more.failed;
  counts.skipped += more.skipped;
}
