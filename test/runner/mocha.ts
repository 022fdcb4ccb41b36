import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';
import { killTree } from './process-tree.js';

/** The result of a test file. */
export interface FileResult {
  /** Path relative to the root of the checkout. */
  readonly file: string;
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  readonly tookMs: number;
  readonly failures: readonly Failure[];
}

export interface Failure {
  readonly title: string;
  readonly reason: string;
}

// not bin/mocha.js, which would start this file in another process
const MOCHA = join(REPO_DIR, 'node_modules/mocha/lib/cli/cli.js');
const REPORTER = join(REPO_DIR, 'test/runner/file-reporter.cjs');
/** Makes mocha import test files. A module that is also required would exist twice, and confuse coverage. */
const IMPORT_ONLY = '--no-experimental-require-module';
/** Wait for the exit after the last test. A live process has left something open. */
const EXIT_WAIT_MS = 60_000;
const WATCH_EVERY_MS = 1_000;
/** Wait for the pipes, which a leftover program keeps open. */
const PIPES_WAIT_MS = 5_000;

interface HowToRun {
  /** Arguments of mocha. */
  readonly options: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  /** Ends the process, and everything that it has started. */
  readonly signal: AbortSignal;
}

/** Runs test files in one process and shows its output as it arrives. Never rejects: a file without a result failed. */
export async function runMocha(files: readonly string[], { options, env, signal }: HowToRun): Promise<FileResult[]> {
  const folder = mkdtempSync(join(tmpdir(), 'seckill-test-'));
  const countFile = join(folder, 'counts.ndjson');
  const color = process.stdout.isTTY ? { FORCE_COLOR: '1' } : {}; // mocha writes into a pipe
  const args = [IMPORT_ONLY, '--import', 'tsx', MOCHA, '--reporter', REPORTER, ...options, ...files];
  const child = spawn(process.execPath, args, {
    cwd: REPO_DIR,
    env: { ...env, ...color, SECKILL_TEST_COUNTS: countFile },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const stop = (): void => {
    if (child.pid !== undefined) killTree(child.pid);
  };
  signal.addEventListener('abort', stop, { once: true });
  // by whole lines, because other processes write to the same terminal
  for (const input of [child.stdout, child.stderr]) createInterface({ input }).on('line', (line) => console.log(line));
  let endedMs = Infinity;
  const watch = setInterval(() => {
    if (endedMs === Infinity && readLines(countFile).some(isEnd)) endedMs = Date.now();
    if (Date.now() - endedMs > EXIT_WAIT_MS) stop();
  }, WATCH_EVERY_MS);
  const code = await new Promise<number | null>((resolve) => {
    child.once('close', resolve);
    child.once('exit', (exitCode) => setTimeout(() => resolve(exitCode), PIPES_WAIT_MS).unref());
  });
  clearInterval(watch);
  signal.removeEventListener('abort', stop);
  const lines = readLines(countFile);
  rmSync(folder, { recursive: true, force: true });
  const results = lines.filter((line) => !isEnd(line)) as FileResult[];
  const isStuck = Date.now() - endedMs > EXIT_WAIT_MS;
  const why = isStuck
    ? 'all tests had ended, and the process did not: something is left open'
    : `mocha ended with ${code} and ran no test of the file to its end`;
  const hasResult = new Set(results.map(({ file }) => file));
  // --grep may filter out all tests of a file
  const mayBeEmpty = lines.some(isEnd) && options.includes('--grep');
  const missing = files.filter((file) => isStuck || (!mayBeEmpty && !hasResult.has(file)));
  return [...results, ...missing.map((file) => failedFile(file, why))];
}

/** A file that failed as a whole. */
export const failedFile = (file: string, reason: string): FileResult => ({
  ...{ file, passed: 0, failed: 1, skipped: 0, tookMs: 0 },
  failures: [{ title: file, reason }],
});

type Line = FileResult | { readonly ended: true };
const isEnd = (line: Line): boolean => 'ended' in line;

function readLines(path: string): Line[] {
  try {
    const text = readFileSync(path, 'utf8');
    return text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as Line]));
  } catch {
    return []; // no file has ended yet
  }
}
