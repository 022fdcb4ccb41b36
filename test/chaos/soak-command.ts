import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { reportStackError } from '../../deploy/local/stack-command.js';
import { renderTable } from '../helpers/render-table.js';
import { buildIfOlder, BUILT_MAIN } from './harness/commands.js';
import type { StackControls } from './harness/stack-controls.js';
import { onOwnStacks } from './own-stacks.js';
import { readFacts } from './report.js';
import { runScenario } from './run-scenario.js';
import type { FaultReport } from './soak/faults.js';
import { faultCells, SOAK_HEADER, soakLines, soakPage, soakSentence } from './soak/soak-report.js';
import { Soak } from './soak/soak.js';

/** Options of `chaos soak`. */
export interface SoakFlags {
  readonly minutes: number;
  readonly faultEveryS: number;
  readonly seed: number;
  readonly json?: boolean;
  readonly keep?: boolean;
  readonly report?: string;
}

const EXIT_RED = 1;

/** Boots servers, loads and breaks them for minutes, and prints what came of it. Sets the exit code. */
export async function runSoak(flags: SoakFlags): Promise<void> {
  const { json, keep, seed, minutes, faultEveryS } = flags;
  const say = (line: string): void => void (json ? undefined : console.log(line));
  const sayJson = (line: object): void => void (json ? console.log(JSON.stringify(line)) : undefined);
  say(`Seed: ${seed}`);
  sayJson({ result: 'seeds', seeds: [seed] });
  const onFault = (fault: FaultReport): void => {
    const [atS = '', what = '', acceptedS, orderedS] = faultCells(fault);
    say(`${atS.padStart(5)} s  ${what.padEnd(24)} accepted again after ${acceptedS} s, orders after ${orderedS} s`);
    sayJson({ result: 'fault', ...fault });
  };
  await reportStackError(json, async (signal) => {
    const soak = new Soak({ minutes, faultEveryMs: faultEveryS * 1000, onFault, signal });
    await buildIfOlder();
    const { result, facts } = await onOwnStacks({ count: 1, json, keep, say, signal }, async (stacks) => {
      const stack = stacks[0] as StackControls;
      const facts = await readFacts(stack);
      const result = await runScenario({
        scenario: soak.scenario,
        seed,
        stack,
        env: { ...process.env, ...stack.env },
        main: BUILT_MAIN,
        logDir: join(stack.servers.dir, 'op-log'),
        healthyPrograms: () => Promise.reject(new Error('a soak shares no programs')),
        signal,
        onLogs: (text) => console.error(text),
      });
      signal.throwIfAborted();
      return { result, facts };
    });
    say(`\n${renderTable(SOAK_HEADER, soakLines(soak, result, minutes))}`);
    say(`\n${soakSentence(soak, result, minutes)}`);
    const { faults, buyers, invalidRequests, sales, verdicts } = soak;
    sayJson({ ...result, result: 'soak', minutes, faults, buyers, invalidRequests, sales, verdicts });
    if (result.outcome === 'red') process.exitCode = EXIT_RED;
    if (flags.report === undefined) return;
    const file = resolve(flags.report);
    const date = new Date().toISOString().slice(0, 16).replace('T', ' ') + ' UTC';
    const again = `npm run chaos -- soak --minutes ${minutes} --fault-every-s ${faultEveryS} --seed ${seed}`;
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, soakPage({ soak, result, minutes, facts, date, again }));
    say(`Written: ${file}`);
  });
  // waits of a soak that ran out of time may be left, and would keep the command alive for minutes
  process.exit();
}
