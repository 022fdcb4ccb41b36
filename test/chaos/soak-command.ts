import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { reportStackError } from '../../deploy/local/stack-failure.js';
import { renderTable } from '../helpers/render-table.js';
import { buildIfOlder, BUILT_MAIN } from './harness/commands.js';
import type { StackHands } from './harness/stack-controls.js';
import { onOwnStacks } from './own-stacks.js';
import { readFacts } from './report.js';
import { runRow } from './run-scenario.js';
import type { FaultTold } from './soak/faults.js';
import { faultCells, SOAK_HEADER, soakLines, soakPage, soakSentence } from './soak/soak-report.js';
import { Soak } from './soak/soak.js';

/** What a person gave to `chaos soak`. */
export interface SoakFlags {
  readonly minutes: number;
  readonly faultEveryS: number;
  readonly seed: number;
  readonly json?: boolean;
  readonly keep?: boolean;
  readonly report?: string;
}

const EXIT_RED = 1;

/** Boots servers, loads and breaks them for minutes, and says what came of it. Sets the exit code. */
export async function runSoak(flags: SoakFlags): Promise<void> {
  const { json, keep, seed, minutes, faultEveryS } = flags;
  const say = (line: string): void => void (json ? undefined : console.log(line));
  const tell = (line: object): void => void (json ? console.log(JSON.stringify(line)) : undefined);
  say(`Seed: ${seed}`);
  tell({ result: 'seeds', seeds: [seed] });
  const onFault = (told: FaultTold): void => {
    const [atS = '', what = '', yesS, ordersS] = faultCells(told);
    say(`${atS.padStart(5)} s  ${what.padEnd(24)} yes again after ${yesS} s, orders after ${ordersS} s`);
    tell({ result: 'fault', ...told });
  };
  await reportStackError(json, async (signal) => {
    const soak = new Soak({ minutes, faultEveryMs: faultEveryS * 1000, onFault, signal });
    if (await buildIfOlder(signal)) say('The programs were built.');
    const { result, facts } = await onOwnStacks({ count: 1, json, keep, say, signal }, async (stacks) => {
      const stack = stacks[0] as StackHands;
      const env = { ...process.env, ...stack.env };
      const logDir = join(stack.servers.dir, 'op-log');
      const survivors = (): never => {
        throw new Error('a soak shares no programs');
      };
      const onLogs = (text: string): void => console.error(text);
      const facts = await readFacts(stack);
      const result = await runRow({
        row: soak.row,
        seed,
        stack,
        env,
        main: BUILT_MAIN,
        logDir,
        survivors,
        signal,
        onLogs,
      });
      signal.throwIfAborted();
      return { result, facts };
    });
    say(`\n${renderTable(SOAK_HEADER, soakLines(soak, result, minutes))}`);
    say(`\n${soakSentence(soak, result, minutes)}`);
    const { faults, crowd, hostile, sales, verdicts } = soak;
    tell({ ...{ ...result, result: 'soak' }, minutes, faults, crowd, hostile, sales, verdicts });
    if (result.outcome === 'red') process.exitCode = EXIT_RED;
    if (flags.report === undefined) return;
    const file = resolve(flags.report);
    const date = new Date().toISOString().slice(0, 16).replace('T', ' ') + ' UTC';
    const again = `npm run chaos -- soak --minutes ${minutes} --fault-every-s ${faultEveryS} --seed ${seed}`;
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, soakPage({ soak, result, minutes, facts, date, again }));
    say(`Written: ${file}`);
  });
  // waits of a soak that was given up may be left, and would hold the command for minutes
  process.exit();
}
