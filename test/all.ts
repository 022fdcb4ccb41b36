import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { REPO_DIR } from '../deploy/local/stack/paths.js';
import { ALL_COMMANDS } from './runner/commands.js';
import { coverageByRoom } from './runner/coverage.js';

/** `npm run test:all`: prints a line per command at the end, then the counts: `N passed, N failed`. */

interface Step {
  readonly name: string;
  /** Arguments of Node. */
  readonly args: readonly string[];
}

const script = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const RUN = script('./run.mjs');
/** Each command of `npm test` in a process and on servers of its own. */
const coverageDir = mkdtempSync(join(tmpdir(), 'seckill-coverage-'));
const TEST_STEPS = ALL_COMMANDS.map((name) => ({ name, args: [RUN, name, '--coverage-into', coverageDir] }));
const STEPS: readonly Step[] = [
  ...TEST_STEPS,
  { name: 'simulate', args: ['--import', 'tsx', script('./simulation/main.ts')] },
  { name: 'mutants', args: ['--import', 'tsx', script('./mutants/main.ts')] },
  { name: 'matrix', args: [script('./matrix/main.mjs'), '--mysql', '8.0', '--short'] },
];
const NAME_WIDTH = Math.max(...STEPS.map(({ name }) => name.length));

const lines: string[] = [];
const total = { passed: 0, failed: 0, skipped: 0 };
const startedMs = Date.now();
let running: ReturnType<typeof spawn> | null = null;
let isStopped = false;
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    isStopped = true;
    running?.kill('SIGTERM');
  });
}

for (const step of STEPS) {
  if (isStopped) break;
  console.log(`\n==== ${step.name}`);
  const beganMs = Date.now();
  const { code, output } = await run(step);
  const counts = countsIn(output) ?? { passed: code === 0 ? 1 : 0, failed: code === 0 ? 0 : 1, skipped: 0 };
  if (code !== 0 && counts.failed === 0) counts.failed = 1; // it said no failure and ended with one
  for (const key of ['passed', 'failed', 'skipped'] as const) total[key] += counts[key];
  const seconds = Math.round((Date.now() - beganMs) / 1000);
  const { passed, failed, skipped } = counts;
  const shaky = /^\d+ shaky: .*$/m.exec(output)?.[0];
  const more = [skipped > 0 ? `${skipped} skipped` : '', shaky ?? ''].filter((text) => text !== '');
  const figures = [`${passed} passed`, `${failed} failed`, ...more].join(', ');
  lines.push(`${failed > 0 ? '✗' : '✓'} ${step.name.padEnd(NAME_WIDTH)} ${String(seconds).padStart(5)} s  ${figures}`);
}

await judgeCoverage();
console.log(`\n${lines.join('\n')}`);
console.log(`took ${Math.round((Date.now() - startedMs) / 1000)} s`);
console.log(`${total.passed} passed, ${total.failed} failed${total.skipped > 0 ? `, ${total.skipped} skipped` : ''}`);
process.exit(total.failed > 0 || isStopped ? 1 : 0);

/** Compares what the unit and contract tests of all commands covered with the floors. */
async function judgeCoverage(): Promise<void> {
  if (!isStopped) {
    const { table, missed } = await coverageByRoom(coverageDir).catch((error: Error) => ({
      table: '',
      missed: [error.message],
    }));
    console.log(`\nCoverage by unit and contract tests, percent\n${table}`);
    for (const sentence of missed) console.log(`FAILED ${sentence}`);
    total[missed.length > 0 ? 'failed' : 'passed']++;
    lines.push(
      `${missed.length > 0 ? '✗' : '✓'} ${'coverage'.padEnd(NAME_WIDTH)}          ${missed.length} floors missed`,
    );
  }
  rmSync(coverageDir, { recursive: true, force: true });
}

/** Runs a step and shows its output as it comes. */
function run({ args }: Step): Promise<{ readonly code: number | null; readonly output: string }> {
  const child = spawn(process.execPath, args, { cwd: REPO_DIR, stdio: ['ignore', 'pipe', 'inherit'] });
  running = child;
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
    process.stdout.write(text);
  });
  return new Promise((resolve, reject) =>
    child.once('error', reject).once('close', (code) => resolve({ code, output })),
  );
}

/** The last line of the form `N passed, N failed`; null where a step prints none. */
function countsIn(output: string): { passed: number; failed: number; skipped: number } | null {
  const last = [...output.matchAll(/^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$/gm)].at(-1);
  if (last === undefined) return null;
  const [, passed, failed, skipped = '0'] = last;
  return { passed: Number(passed), failed: Number(failed), skipped: Number(skipped) };
}
