import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { reportStackError } from '../../deploy/local/stack-command.js';
import { renderTable } from '../helpers/render-table.js';
import { buildIfOlder } from './harness/commands.js';
import type { StackControls } from './harness/stack-controls.js';
import { LongRun } from './long/long-run.js';
import type { RunPlan } from './long/plan.js';
import { HEADER, resultLines, resultPage, resultSentence } from './long/report.js';
import { onOwnStacks } from './own-stacks.js';
import { readFacts } from './report.js';

/** Options of `chaos soak` and `chaos year` that do not change the run itself. */
export interface LongFlags {
  readonly keep?: boolean;
  readonly report?: string;
}

const EXIT_RED = 1;

/**
 * Boots servers, runs a plan on them, and prints the result. Sets the exit code.
 * @param again the command that repeats the run
 */
export async function runLong(plan: RunPlan, again: string, { keep, report }: LongFlags): Promise<void> {
  console.log(`Seed: ${plan.seed}`);
  await reportStackError(false, async (signal) => {
    await buildIfOlder();
    const { result, facts } = await onOwnStacks({ count: 1, keep, signal }, async (stacks) => {
      const stack = stacks[0] as StackControls;
      const facts = await readFacts(stack);
      const run = new LongRun({
        plan,
        stack,
        env: { ...process.env, ...stack.env },
        signal,
        onProgress: (line) => console.log(line),
      });
      return { facts, result: await run.run() };
    });
    console.log(`\n${renderTable(HEADER, resultLines(result))}`);
    for (const [message, times] of Object.entries(result.logged)) console.log(`logged ${times} times: ${message}`);
    console.log(`\n${resultSentence(result)}`);
    if (result.problems.length > 0) process.exitCode = EXIT_RED;
    if (report === undefined) return;
    const file = resolve(report);
    const date = new Date().toISOString().slice(0, 16).replace('T', ' ') + ' UTC';
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, resultPage({ run: result, facts, date, again }));
    console.log(`Written: ${file}`);
  });
  process.exit();
}
