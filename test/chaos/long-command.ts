import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { reportStackError } from '../../deploy/local/stack-command.js';
import { buildIfOlder } from './harness/commands.js';
import type { StackControls } from './harness/stack-controls.js';
import { onOwnStacks } from './own-stacks.js';
import { readFacts } from './report.js';
import { renderTable } from '../helpers/render-table.js';
import { YEAR_HEADER, yearLines, yearPage, yearSentence } from './long/report.js';
import { Year } from './long/long-run.js';

/** Options of `chaos year`. */
export interface YearFlags {
  readonly sales: number;
  readonly orders: number;
  readonly large: number;
  readonly faults: number;
  readonly seed: number;
  readonly minutes: number;
  readonly json?: boolean;
  readonly keep?: boolean;
  readonly report?: string;
}

const EXIT_RED = 1;

/** Boots servers, runs the sales of a year on them, and prints what came of it. Sets the exit code. */
export async function runYear(flags: YearFlags): Promise<void> {
  const { json, keep } = flags;
  const say = (line: string): void => void (json ? undefined : console.log(line));
  say(`Seed: ${flags.seed}`);
  await reportStackError(json, async (signal) => {
    await buildIfOlder();
    const { result, facts } = await onOwnStacks({ count: 1, json, keep, say, signal }, async (stacks) => {
      const stack = stacks[0] as StackControls;
      const facts = await readFacts(stack);
      const year = new Year({
        ...flags,
        stack,
        env: { ...process.env, ...stack.env },
        signal,
        onProgress: (line, figures) => (json ? console.log(JSON.stringify(figures)) : say(line)),
      });
      return { facts, result: await year.run() };
    });
    if (json) console.log(JSON.stringify({ result: 'year', ...result }));
    say(`\n${renderTable(YEAR_HEADER, yearLines(result))}`);
    for (const [message, times] of Object.entries(result.logged)) say(`logged ${times} times: ${message}`);
    say(`\n${yearSentence(result)}`);
    if (result.problems.length > 0) process.exitCode = EXIT_RED;
    if (flags.report === undefined) return;
    const file = resolve(flags.report);
    const date = new Date().toISOString().slice(0, 16).replace('T', ' ') + ' UTC';
    const { sales, orders, large, faults, seed } = flags;
    const again = `npm run chaos -- year --sales ${sales} --orders ${orders} --large ${large} --faults ${faults} --seed ${seed}`;
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, yearPage({ year: result, facts, date, again }));
    say(`Written: ${file}`);
  });
  process.exit();
}
