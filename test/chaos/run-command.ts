import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { reportStackError } from '../../deploy/local/stack-command.js';
import { seconds } from '../../deploy/local/stack-progress.js';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';
import type { WitnessFinding } from '../../src/mysql/witness-store.js';
import { renderTable } from '../helpers/render-table.js';
import { buildIfOlder } from './harness/commands.js';
import type { StackControls } from './harness/stack-controls.js';
import { onOwnStacks } from './own-stacks.js';
import { cellsOf, HEADER, readFacts, reportPage, summarize, totalLine } from './report.js';
import type { ScenarioResult } from './run-scenario.js';
import { Schedule, SuiteRun } from './run-suite.js';
import type { Scenario } from './scenario.js';
import { witnessScenarios } from './witness-scenarios.js';

/** Options of `chaos run`. */
export interface ChaosFlags {
  readonly seeds: number;
  readonly keep?: boolean;
  readonly jobs: number;
  readonly stacks: number;
  readonly coupons?: number;
}

const REPORT_FILE = join(REPO_DIR, 'bench', 'chaos-report.md');
const EXIT_RED = 1;

/**
 * Boots servers, runs scenarios on them and prints the result. Sets the exit code.
 * @param writesReport true for a run of every scenario
 */
export async function runChaos(
  scenarios: readonly Scenario[],
  seeds: readonly number[],
  flags: ChaosFlags,
  writesReport: boolean,
): Promise<void> {
  const { keep, jobs } = flags;
  console.log(`Seeds: ${seeds.join(' ')}`);
  process.env.WITNESS ??= 'watch';
  await reportStackError(false, async (signal) => {
    const startedMs = performance.now();
    await buildIfOlder();
    const { results, facts } = await onOwnStacks({ count: flags.stacks, keep, signal }, async (stacks) => {
      const schedule = new Schedule(scenarios, seeds);
      const facts = await readFacts(stacks[0] as StackControls);
      const runs = stacks.map(
        (stack) =>
          new SuiteRun({
            stack,
            env: { ...process.env, ...stack.env },
            jobs,
            signal,
            onEnd: (result) => console.log(lineOf(result)),
            onLogs: (text) => console.error(text),
          }),
      );
      const over = new AbortController();
      const witnesses = stacks.map((stack) => witnessScenarios(stack, AbortSignal.any([signal, over.signal])));
      try {
        const results = await Promise.all(runs.map((run) => run.run(schedule)));
        signal.throwIfAborted();
        const losesLog = scenarios.some(({ name }) => name === 'L3/mysql'); // a full disk cuts the binary log off
        for (const read of witnesses) if (read !== null) reportFindings(await read(), losesLog);
        return { results: results.flat(), facts };
      } finally {
        over.abort();
        await Promise.all(runs.map((run) => run.endShared()));
      }
    });
    const tookMs = Math.round(performance.now() - startedMs);
    const summaries = summarize(
      scenarios.map(({ name }) => name),
      results,
    );
    console.log(`\n${renderTable(HEADER, summaries.filter(({ skipped }) => skipped === null).map(cellsOf))}`);
    console.log(`\n${totalLine(summaries, seeds.length)}`);
    if (results.some(({ outcome }) => outcome === 'red')) process.exitCode = EXIT_RED;
    if (writesReport) {
      const date = new Date().toISOString().slice(0, 16).replace('T', ' ') + ' UTC';
      writeFileSync(REPORT_FILE, reportPage(summaries, seeds, { facts, date, tookMs }));
      console.log(`Written: ${REPORT_FILE}`);
    }
  });
  // waits of a scenario that exceeded its time may be left, and would keep the command alive for minutes
  process.exit();
}

/** Says what the witness found. No program makes such a change, so the run is red. */
function reportFindings(findings: readonly WitnessFinding[], losesLog: boolean): void {
  console.log(`\nThe witness read to the end: ${findings.length} findings`);
  for (const { committedAtMs, kind, saleId, detail } of findings) {
    console.log(`  ${new Date(committedAtMs).toISOString()} ${kind}, sale ${saleId ?? '-'}: ${detail}`);
    if (kind !== 'not_seen' || !losesLog) process.exitCode = EXIT_RED;
  }
}

const NAME_WIDTH = 24;

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
