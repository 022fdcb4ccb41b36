import { Command, InvalidArgumentError } from 'commander';
import { fork, type ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Part, PartDone } from './run-part.js';
import { inSimulatedTime } from './engine/simulated-time.js';
import { JUDGED_FROM_RUNS, missingFrom } from './reached.js';
import { firstBroken, hashOf, simulate } from './run.js';
import { emptyTally, listed, merge, type Tally } from './tally.js';

/** Seeds per part: some seconds of work, to show progress and end all children together. */
const PART_RUNS = 500;
const CHILD = fileURLToPath(new URL('./run-part.ts', import.meta.url));

interface Flags {
  readonly runs: number;
  readonly from: number;
  readonly jobs: number;
  readonly json?: boolean;
  readonly seed?: number;
  readonly trace?: boolean;
  readonly untilBroken?: boolean;
}

const flags = new Command('npm run simulate --')
  .description('Runs the programs of src, unchanged, on servers in memory. A seed decides faults, timing and load.')
  .option('--runs <n>', 'number of runs', whole, 20_000)
  .option('--from <seed>', 'first seed; the others follow it', whole, 1)
  .option('--jobs <n>', 'child processes', whole, 2)
  .option('--json', 'print the totals as one JSON document')
  .option('--until-broken', 'stop at the first run that breaks a promise')
  .option('--seed <n>', 'run only this seed; print its trace when it breaks a promise', whole)
  .option('--trace', 'with --seed: always print the trace')
  .addHelpText(
    'after',
    `\nFrom ${JUDGED_FROM_RUNS} runs on, every fault and event must happen at least once.\n` +
      'Exit codes: 0 every promise was kept, 1 one was broken or something never happened, 2 wrong usage.',
  )
  .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : 2))
  .parse()
  .opts<Flags>();
if (flags.seed !== undefined) process.exitCode = await one(flags.seed);
else process.exitCode = flags.untilBroken ? await untilBroken() : await many();

/** Does one run. Prints the trace with `--trace` or for a broken promise. */
async function one(seed: number): Promise<number> {
  const { violation, lines } = await inSimulatedTime(() => simulate(seed, true));
  if (flags.trace || violation !== null) console.log(lines.join('\n'));
  console.log(`seed ${seed}: ${violation === null ? 'all promises kept' : `${violation.code} ${violation.what}`}`);
  console.log(`${lines.length} lines, trace ${hashOf(lines)}`);
  return violation === null ? 0 : 1;
}

async function untilBroken(): Promise<number> {
  const broken = await firstBroken(flags.from, flags.runs);
  if (flags.json) console.log(JSON.stringify(broken));
  else if (broken === null) console.log(`every promise was kept in ${flags.runs} runs`);
  else console.log(`seed ${broken.seed}: ${broken.code} ${broken.what}`);
  return broken === null ? 0 : 1;
}

async function many(): Promise<number> {
  const { runs, from, jobs } = flags;
  const startedMs = Date.now();
  const all = emptyTally();
  const parts = partsOf(from, runs);
  await Promise.all(Array.from({ length: jobs }, () => work(parts, all, runs)));
  const tookMs = Date.now() - startedMs;
  if (flags.json) console.log(JSON.stringify({ from, tookMs, ...all }));
  else print(all, tookMs);
  for (const { seed } of all.broken.slice(0, 1)) console.error(`trace: npm run simulate -- --seed ${seed}`);
  const missing = runs >= JUDGED_FROM_RUNS ? missingFrom(all) : [];
  for (const sentence of missing) console.error(sentence);
  return all.brokenRuns === 0 && all.runs === runs && missing.length === 0 ? 0 : 1;
}

function partsOf(from: number, runs: number): Part[] {
  const parts: Part[] = [];
  for (let done = 0; done < runs; done += PART_RUNS) {
    parts.push({ from: from + done, runs: Math.min(PART_RUNS, runs - done) });
  }
  return parts;
}

/** Runs parts in a child process until no part is left. */
function work(parts: Part[], all: Tally, runs: number): Promise<void> {
  return new Promise((resolve) => {
    const child = fork(CHILD);
    const next = (): void => {
      const part = parts.shift();
      if (part === undefined) child.disconnect();
      else child.send(part);
    };
    child.on('message', ({ tally }: PartDone) => {
      merge(all, tally);
      for (const { seed, code, what } of tally.broken) console.error(`seed ${seed}: ${code} ${what}`);
      console.error(`${all.runs} of ${runs} runs, ${all.brokenRuns} broke a promise`);
      next();
    });
    child.on('exit', () => resolve());
    stopWith(child);
    next();
  });
}

/** Ends the child together with its parent. */
function stopWith(child: ChildProcess): void {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => child.kill(signal));
}

function print({ runs, events, virtualMs, brokenRuns, broken, faults, hits, counts }: Tally, tookMs: number): void {
  console.log(`faults: ${listed(faults)}`);
  console.log(`calls hit by faults: ${listed(hits)}`);
  console.log(`events: ${listed(counts)}`);
  for (const { seed, code, what } of broken) console.log(`seed ${seed}: ${code} ${what}`);
  const each = `${(tookMs / runs).toFixed(2)} ms and ${Math.round(events / runs)} events each`;
  console.log(`${runs} runs, ${each}, ${Math.round(virtualMs / 3_600_000)} h of virtual time`);
  console.log(brokenRuns === 0 ? 'every promise was kept' : `${brokenRuns} runs broke a promise`);
}

function whole(text: string): number {
  const value = Number(text);
  if (Number.isSafeInteger(value) && value >= 1) return value;
  throw new InvalidArgumentError('must be a whole number from 1.');
}
