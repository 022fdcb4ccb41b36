import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { bootOwnStack, type OwnStack } from '../chaos/chaos-stack.js';
import { readFacts, type Facts } from '../chaos/facts.js';
import { buildIfOlder } from '../chaos/harness/built-main.js';
import { closeConnections } from '../chaos/harness/http-client.js';
import { openHands, type StackHands } from '../chaos/harness/stack-hands.js';
import { cellsOf, HEADER, reportPage, summarize, totalLine } from '../chaos/report.js';
import { nameOf, type Row, type RowResult } from '../chaos/row.js';
import { Matrix, Turns } from '../chaos/run-matrix.js';
import { REPO_DIR } from '../stack/paths.js';
import type { OnProgress, StackStep } from '../stack/progress.js';
import { SERVER_NAMES } from '../stack/servers/server-spec.js';
import type { Stack } from '../stack/stack.js';
import { ChaosProgress } from './chaos-progress.js';
import { reportStackError } from './stack-failure.js';
import { progressStyle, showProgress } from './stack-progress.js';
import { renderTable } from './table.js';

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

const CHAOS_DIR = join(REPO_DIR, '.stack-chaos');
const REPORT_FILE = join(REPO_DIR, 'bench', 'chaos-report.md');
/** `.stack-chaos`, `.stack-chaos-2` … */
const foldersOf = (stacks: number): string[] =>
  Array.from({ length: stacks }, (_, index) => (index === 0 ? CHAOS_DIR : `${CHAOS_DIR}-${index + 1}`));
const BOOT_STEPS: readonly StackStep[] = ['artifacts', ...SERVER_NAMES];
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
  const { flags, signal } = parts;
  const booted: OwnStack[] = [];
  const stray = (error: unknown): void => {
    process.exitCode = EXIT_RED;
    parts.progress.say(`An error that belongs to no row: ${error instanceof Error ? error.stack : String(error)}`);
  };
  try {
    for (const dir of foldersOf(flags.stacks)) {
      const boot = (onProgress: OnProgress) => bootOwnStack({ dir, onProgress, signal });
      booted.push(await showProgress(progressStyle(flags.json === true), BOOT_STEPS, boot));
    }
    process.on('uncaughtException', stray).on('unhandledRejection', stray); // the servers must not be left running
    return await runOn(
      booted.map(({ stack }) => stack),
      new Turns(rows, seeds),
      parts,
    );
  } finally {
    await Promise.all(booted.map(({ stop }) => stop()));
    for (const dir of flags.keep ? [] : foldersOf(flags.stacks)) {
      rmSync(join(dir, 'data'), { recursive: true, force: true });
    }
  }
}

async function runOn(stacks: readonly Stack[], turns: Turns, { flags, progress, signal }: RunParts): Promise<Ran> {
  const hands = await Promise.all(stacks.map((stack) => openHands(stack.dir, stack.env())));
  const matrices = hands.map(
    (stack) =>
      new Matrix({
        stack,
        env: { ...process.env, ...stack.env },
        jobs: flags.jobs,
        signal,
        onBegin: (row) => progress.begin(row),
        onEnd: (result) => progress.end(result),
        onLogs: (text) => progress.logs(text),
      }),
  );
  try {
    const facts = await readFacts(hands[0] as StackHands);
    const results = await Promise.all(matrices.map((matrix) => matrix.run(turns)));
    signal.throwIfAborted();
    return { results: results.flat(), facts };
  } finally {
    progress.close();
    await Promise.all(matrices.map((matrix) => matrix.endShared()));
    closeConnections();
    await Promise.all(hands.map((one) => one.close()));
  }
}
