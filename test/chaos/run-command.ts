import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { reportStackError } from '../../deploy/local/stack-failure.js';
import { seconds } from '../../deploy/local/stack-progress.js';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';
import { renderTable } from '../helpers/render-table.js';
import { buildIfOlder } from './harness/commands.js';
import type { StackHands } from './harness/stack-controls.js';
import { onOwnStacks } from './own-stacks.js';
import { cellsOf, type Facts, HEADER, readFacts, reportPage, summarize, totalLine } from './report.js';
import { Matrix, Turns } from './run-suite.js';
import { nameOf, type Row, type RowResult } from './scenario.js';

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

const ROW_WIDTH = 24;

/** News of a run: one line per row that ended; on a terminal a last line says what runs. */
export class ChaosProgress {
  readonly #total: number;
  readonly #json: boolean;
  readonly #live: boolean;
  readonly #running: string[] = [];
  #ended = 0;
  #timer: NodeJS.Timeout | null = null;

  constructor(total: number, json: boolean) {
    this.#total = total;
    this.#json = json;
    this.#live = !json && process.stdout.isTTY === true;
  }

  seeds(seeds: readonly number[]): void {
    if (this.#json) console.log(JSON.stringify({ result: 'seeds', seeds }));
    else console.log(`Seeds: ${seeds.join(' ')}`);
  }

  begin(row: Row): void {
    this.#running.push(nameOf(row));
    if (this.#live) this.#timer ??= setInterval(() => this.#draw(), 1000);
    this.#draw();
  }

  end(result: RowResult): void {
    this.#ended++;
    this.#running.splice(this.#running.indexOf(result.row), 1);
    if (this.#json) console.log(JSON.stringify({ result: 'row', ...result }));
    else this.say(lineOf(result));
    this.#draw();
  }

  /** What the programs of a row that failed wrote last. */
  logs(text: string): void {
    this.#wipe();
    console.error(text);
  }

  say(line: string): void {
    this.#wipe();
    if (!this.#json) console.log(line);
  }

  close(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
    this.#wipe();
  }

  #draw(): void {
    if (!this.#live || this.#running.length === 0) return;
    const width = (process.stdout.columns ?? 80) - 1;
    const line = `${this.#ended} of ${this.#total} done, running: ${this.#running.join(' ')}`;
    process.stdout.write(`\r\x1b[K${line.slice(0, width)}`);
  }

  #wipe(): void {
    if (this.#live) process.stdout.write('\r\x1b[K');
  }
}

function lineOf({ row, seed, outcome, reason, recoveryMs, tookMs, bites, findings }: RowResult): string {
  const name = row.padEnd(ROW_WIDTH);
  switch (outcome) {
    case 'green': {
      const recovery = recoveryMs === null ? '' : `, at rest ${seconds(recoveryMs)} after it`;
      return `✓ ${name} ${seconds(tookMs).padStart(7)}  ${bites.join(', ')}${recovery}`;
    }
    case 'red':
      return (
        `✗ ${name} ${seconds(tookMs).padStart(7)}  ${reason}\n` +
        findings.map((finding) => `  the books: ${finding}\n`).join('') +
        `  again: npm run chaos -- run ${row} --seed ${seed}`
      );
    case 'skipped':
      return `- ${name} skipped: ${reason}`;
  }
}
