import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';
import type { Output } from './output.js';
import { killTree } from './process-tree.js';

/** What a run of mocha came to. */
export interface Counts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  readonly failures: readonly { readonly title: string; readonly reason: string }[];
}

// not bin/mocha.js, which starts this one as a child of its own: a process more
const MOCHA = join(REPO_DIR, 'node_modules/mocha/lib/cli/cli.js');
const PIPES_WAIT_MS = 5_000;
/** All tests have ended: a process that lives on then has left something open. */
const EXIT_WAIT_MS = 60_000;
/** Of a process that gives way to others on a busy machine. */
const NICENESS = 5;
const REPORTER = join(REPO_DIR, 'test/helpers/counting-reporter.cjs');

/**
 * Runs test files in one process. Never rejects: a process that dies before it has counted is a failure.
 * @param givesWay nothing that it does has a time limit that a busy machine could break
 * @param signal ends it, and all that it has started
 */
export async function runMocha(
  files: readonly string[],
  how: { readonly options: readonly string[]; readonly env: NodeJS.ProcessEnv; readonly givesWay: boolean },
  output: Output,
  signal: AbortSignal,
): Promise<Counts> {
  const folder = mkdtempSync(join(tmpdir(), 'seckill-test-'));
  const countFile = join(folder, 'counts.json');
  const color = process.stdout.isTTY ? { FORCE_COLOR: '1' } : {}; // mocha writes into a pipe
  const mocha = [process.execPath, '--import', 'tsx', MOCHA, '--reporter', REPORTER, ...how.options, ...files];
  const child = spawn('nice', ['-n', String(how.givesWay ? NICENESS : 0), ...mocha], {
    cwd: REPO_DIR,
    env: { ...how.env, ...color, SECKILL_TEST_COUNTS: countFile },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const stop = (): void => {
    if (child.pid !== undefined) killTree(child.pid);
  };
  signal.addEventListener('abort', stop, { once: true });
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => output.write(text));
  }
  let isStuck = false;
  let countedMs = 0;
  const watch = setInterval(() => {
    if (!existsSync(countFile)) return;
    countedMs ||= Date.now();
    if (Date.now() - countedMs < EXIT_WAIT_MS) return;
    isStuck = true;
    stop();
  }, 1_000);
  const code = await new Promise<number | null>((resolve) => {
    child.once('close', resolve);
    // a program that a test has left behind keeps the pipes open
    child.once('exit', (exitCode) => setTimeout(() => resolve(exitCode), PIPES_WAIT_MS).unref());
  });
  clearInterval(watch);
  signal.removeEventListener('abort', stop);
  try {
    const counts = JSON.parse(readFileSync(countFile, 'utf8')) as Counts;
    if (!isStuck) return counts;
    const stuck = {
      title: files.join(' '),
      reason: 'all tests had ended, and the process did not: something is left open',
    };
    return { ...counts, failed: counts.failed + 1, failures: [...counts.failures, stuck] };
  } catch {
    const failures = [{ title: files.join(' '), reason: `mocha ended with ${code} before it could count` }];
    return { passed: 0, failed: 1, skipped: 0, failures };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
