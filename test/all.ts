import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { constants, setPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { REPO_DIR } from '../deploy/local/stack/paths.js';
import { buildIfOlder } from './chaos/harness/commands.js';
import { COMMAND_NAMES } from './runner/commands.js';
import { commandLine, commandLinesIn, countsIn, shown, sumOf, type Counts } from './runner/counts.js';
import { coverageByRoom } from './runner/coverage.js';

/** `npm run test:all`: prints a line per command at the end, then the counts: `N passed, N failed`. */

interface Step {
  readonly name: string;
  /** Arguments of Node. */
  readonly args: readonly string[];
  /** Only computes, in the time that the other commands leave. */
  readonly gently?: boolean;
}

const script = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const coverageDir = mkdtempSync(join(tmpdir(), 'seckill-coverage-'));
const testStep = (name: string, commands: readonly string[]): Step => ({
  name,
  args: [script('./run.mjs'), ...commands, '--coverage-into', coverageDir],
});
/** Promises about time are judged while nothing else runs. */
const ALONE = 'time';
const TESTS = testStep(
  'tests',
  COMMAND_NAMES.filter((name) => name !== ALONE),
);
const MATRIX = { name: 'matrix', args: [script('./matrix/main.mjs'), '--mysql', '8.0', '--short'] };
/** Commands that run beside the tests, which wait half of their time. */
const BESIDE: readonly Step[] = [
  { name: 'simulate', args: ['--import', 'tsx', script('./simulation/main.ts')], gently: true },
  { name: 'mutants', args: ['--import', 'tsx', script('./mutants/main.ts')] },
];

const lines: string[] = [];
const counted: Counts[] = [];
const startedMs = Date.now();
const running = new Set<ChildProcess>();
let isStopped = false;
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    isStopped = true;
    for (const child of running) child.kill('SIGTERM');
  });
}

// built once, before concurrent steps check for a build
await buildIfOlder();
await Promise.all([runSteps([TESTS, MATRIX], true), runSteps(BESIDE, false)]);
await runSteps([testStep(ALONE, [ALONE])], true);
await judgeCoverage();
console.log(`\n${lines.join('\n')}`);
console.log(`took ${Math.round((Date.now() - startedMs) / 1000)} s`);
const total = sumOf(counted);
console.log(shown(total));
process.exit(total.failed > 0 || isStopped ? 1 : 0);

/** @param live whether output is shown as it arrives, or only once the step has ended */
async function runSteps(steps: readonly Step[], live: boolean): Promise<void> {
  for (const step of steps) {
    if (isStopped) return;
    console.log(`\n==== ${step.name} begins`);
    const beganMs = Date.now();
    const { code, output } = await run(step, live);
    if (!live) console.log(`\n==== ${step.name} has ended\n${output}`);
    let counts = countsIn(output) ?? { passed: code === 0 ? 1 : 0, failed: 0, skipped: 0 };
    // the step exited with an error without reporting a failed test
    if (code !== 0 && counts.failed === 0) counts = { ...counts, failed: 1 };
    counted.push(counts);
    const ofCommands = commandLinesIn(output);
    lines.push(...(ofCommands.length > 0 ? ofCommands : [commandLine(step.name, Date.now() - beganMs, shown(counts))]));
    lines.push(...(output.match(/^\d+ shaky: .*$/gm) ?? []));
  }
}

/** Compares the joint coverage of the unit and contract tests of all commands with the floors. */
async function judgeCoverage(): Promise<void> {
  if (!isStopped) {
    const beganMs = Date.now();
    const { table, missed } = await coverageByRoom(coverageDir).catch((error: Error) => ({
      table: '',
      missed: [error.message],
    }));
    console.log(`\nCoverage by unit and contract tests, percent\n${table}`);
    for (const sentence of missed) console.log(`FAILED ${sentence}`);
    const isMissed = missed.length > 0;
    counted.push({ passed: isMissed ? 0 : 1, failed: isMissed ? 1 : 0, skipped: 0 });
    lines.push(commandLine('coverage', Date.now() - beganMs, `${missed.length} floors missed`));
  }
  rmSync(coverageDir, { recursive: true, force: true });
}

function run(
  { args, gently = false }: Step,
  live: boolean,
): Promise<{ readonly code: number | null; readonly output: string }> {
  const child = spawn(process.execPath, args, { cwd: REPO_DIR, stdio: ['ignore', 'pipe', live ? 'inherit' : 'pipe'] });
  running.add(child);
  if (gently && child.pid !== undefined) setPriority(child.pid, constants.priority.PRIORITY_BELOW_NORMAL);
  let output = '';
  const collect = (text: string): void => {
    output += text;
    if (live) process.stdout.write(text);
  };
  child.stdout?.setEncoding('utf8').on('data', collect);
  child.stderr?.setEncoding('utf8').on('data', collect);
  return new Promise((resolve, reject) =>
    child.once('error', reject).once('close', (code) => {
      running.delete(child);
      resolve({ code, output });
    }),
  );
}
