import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readFacts, type Facts } from './facts.js';
import { buildIfOlder } from './harness/built-main.js';
import type { StackHands } from './harness/stack-hands.js';
import { cellsOf, HEADER, reportPage, summarize, totalLine } from './report.js';
import { nameOf, type Row, type RowResult } from './row.js';
import { Matrix, Turns } from './run-matrix.js';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';
import { ChaosProgress } from './chaos-progress.js';
import { onOwnStacks } from './own-stacks.js';
import { reportStackError } from '../../deploy/local/stack-failure.js';
import { renderTable } from '../../src/cli/table.js';

/** What a person gave to `chaos run`. */
export interface ChaosFlags {
  readonly seeds: number;
  readonly json?: boolean;
  readonly keep?: boolean;
  readonly jobs: number;
  readonly stacks: number;
}

interface RunFlags extends ChaosFlags {
  /** Every row: the report is written. */
  readonly full: boolean;
}

const REPORT_FILE = join(REPO_DIR, 'bench', 'chaos-report.md');
const EXIT_RED = 1;

/** Boots servers, breaks them row by row and says what came of it. Sets the exit code. */
export async function runChaos(rows: readonly Row[], seeds: readonly number[], flags: RunFlags): Promise<void> {
  const progress = new ChaosProgress(rows.length * seeds.length, flags.json === true);
  progress.seeds(seeds);
  await reportStackError(flags.json, async (signal) => {
    const startedMs = performance.now();
    if (await buildIfOlder(signal)) progress.say('The programs were built.');
    const { results, facts } = await bootAndRun(rows, seeds, { flags, progress, signal });
    const summaries = summarize(rows.map(nameOf), results);
    const total = totalLine(summaries, seeds.length);
    if (flags.json) console.log(JSON.stringify({ result: 'chaos', total, seeds, tookMs: elapsed(startedMs) }));
    else console.log(`\n${renderTable(HEADER, summaries.filter(({ skipped }) => skipped === null).map(cellsOf))}`);
    if (!flags.json) console.log(`\n${total}`);
    if (results.some(({ outcome }) => outcome === 'red')) process.exitCode = EXIT_RED;
    if (flags.full) {
      const date = new Date().toISOString().slice(0, 16).replace('T', ' ') + ' UTC';
      writeFileSync(REPORT_FILE, reportPage({ summaries, seeds, facts, date, tookMs: elapsed(startedMs) }));
      progress.say(`Written: ${REPORT_FILE}`);
    }
  });
  // waits of a row that was given up may be left, and would hold the command for minutes
  process.exit();
}

const elapsed = (sinceMs: number): number => Math.round(performance.now() - sinceMs);

interface RunParts {
  readonly flags: RunFlags;
  readonly progress: ChaosProgress;
  readonly signal: AbortSignal;
}

interface Ran {
  readonly results: readonly RowResult[];
  readonly facts: Facts;
}

async function bootAndRun(rows: readonly Row[], seeds: readonly number[], parts: RunParts): Promise<Ran> {
  const { flags, progress, signal } = parts;
  const say = (line: string): void => progress.say(line);
  return onOwnStacks({ ...flags, count: flags.stacks, say, signal }, async (stacks) => {
    const matrices = stacks.map(
      (stack) =>
        new Matrix({
          ...{ stack, env: { ...process.env, ...stack.env }, jobs: flags.jobs, signal },
          onBegin: (row) => progress.begin(row),
          onEnd: (result) => progress.end(result),
          onLogs: (text) => progress.logs(text),
        }),
    );
    try {
      const facts = await readFacts(stacks[0] as StackHands);
      const turns = new Turns(rows, seeds);
      const results = await Promise.all(matrices.map((matrix) => matrix.run(turns)));
      signal.throwIfAborted();
      return { results: results.flat(), facts };
    } finally {
      progress.close();
      await Promise.all(matrices.map((matrix) => matrix.endShared()));
    }
  });
}
