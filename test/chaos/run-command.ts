import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { reportStackError } from '../../deploy/local/stack-command.js';
import { seconds } from '../../deploy/local/stack-progress.js';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';
import { renderTable } from '../helpers/render-table.js';
import { buildIfOlder } from './harness/commands.js';
import type { StackControls } from './harness/stack-controls.js';
import { onOwnStacks } from './own-stacks.js';
import { cellsOf, HEADER, readFacts, reportPage, summarize, totalLine } from './report.js';
import type { ScenarioResult } from './run-scenario.js';
import { Schedule, SuiteRun } from './run-suite.js';
import type { Scenario } from './scenario.js';

/** Options of `chaos run`. */
export interface ChaosFlags {
  readonly seeds: number;
  readonly json?: boolean;
  readonly keep?: boolean;
  readonly jobs: number;
  readonly stacks: number;
}

const REPORT_FILE = join(REPO_DIR, 'bench', 'chaos-report.md');
const EXIT_RED = 1;

/**
 * Boots servers, runs scenarios on them and prints what came of it. Sets the exit code.
 * @param writesReport true for a run of every scenario
 */
export async function runChaos(
  scenarios: readonly Scenario[],
  seeds: readonly number[],
  flags: ChaosFlags,
  writesReport: boolean,
): Promise<void> {
  const { json, keep, jobs } = flags;
  const progress = new ChaosProgress(scenarios.length * seeds.length, json === true);
  progress.seeds(seeds);
  await reportStackError(json, async (signal) => {
    const startedMs = performance.now();
    await buildIfOlder();
    const say = (line: string): void => progress.say(line);
    const { results, facts } = await onOwnStacks({ count: flags.stacks, json, keep, say, signal }, async (stacks) => {
      const schedule = new Schedule(scenarios, seeds);
      const facts = await readFacts(stacks[0] as StackControls);
      const runs = stacks.map(
        (stack) =>
          new SuiteRun({
            stack,
            env: { ...process.env, ...stack.env },
            jobs,
            signal,
            onBegin: (scenario) => progress.begin(scenario),
            onEnd: (result) => progress.end(result),
            onLogs: (text) => progress.logs(text),
          }),
      );
      try {
        const results = await Promise.all(runs.map((run) => run.run(schedule)));
        signal.throwIfAborted();
        return { results: results.flat(), facts };
      } finally {
        progress.close();
        await Promise.all(runs.map((run) => run.endShared()));
      }
    });
    const tookMs = Math.round(performance.now() - startedMs);
    const summaries = summarize(
      scenarios.map(({ name }) => name),
      results,
    );
    const total = totalLine(summaries, seeds.length);
    if (json) console.log(JSON.stringify({ result: 'chaos', total, seeds, tookMs }));
    else {
      console.log(`\n${renderTable(HEADER, summaries.filter(({ skipped }) => skipped === null).map(cellsOf))}`);
      console.log(`\n${total}`);
    }
    if (results.some(({ outcome }) => outcome === 'red')) process.exitCode = EXIT_RED;
    if (writesReport) {
      const date = new Date().toISOString().slice(0, 16).replace('T', ' ') + ' UTC';
      writeFileSync(REPORT_FILE, reportPage(summaries, seeds, { facts, date, tookMs }));
      progress.say(`Written: ${REPORT_FILE}`);
    }
  });
  // waits of a scenario that ran out of time may be left, and would keep the command alive for minutes
  process.exit();
}

const NAME_WIDTH = 24;

/** Prints a line per scenario that ended; on a terminal a last line says what runs. */
class ChaosProgress {
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

  begin({ name }: Scenario): void {
    this.#running.push(name);
    if (this.#live) this.#timer ??= setInterval(() => this.#draw(), 1000);
    this.#draw();
  }

  end(result: ScenarioResult): void {
    this.#ended++;
    this.#running.splice(this.#running.indexOf(result.scenario), 1);
    if (this.#json) console.log(JSON.stringify({ result: 'scenario', ...result }));
    else this.say(lineOf(result));
    this.#draw();
  }

  /** The last lines that the programs of a failed scenario logged. */
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

function lineOf({
  scenario,
  seed,
  outcome,
  reason,
  recoveryMs,
  tookMs,
  observations,
  findings,
}: ScenarioResult): string {
  const name = scenario.padEnd(NAME_WIDTH);
  switch (outcome) {
    case 'green': {
      const recovery = recoveryMs === null ? '' : `, at rest ${seconds(recoveryMs)} after it`;
      return `✓ ${name} ${seconds(tookMs).padStart(7)}  ${observations.join(', ')}${recovery}`;
    }
    case 'red':
      return (
        `✗ ${name} ${seconds(tookMs).padStart(7)}  ${reason}\n` +
        findings.map((finding) => `  found: ${finding}\n`).join('') +
        `  again: npm run chaos -- run ${scenario} --seed ${seed}`
      );
    case 'skipped':
      return `- ${name} skipped: ${reason}`;
  }
}
