import { join } from 'node:path';
import type { Environment } from '../../src/core/config/load.js';
import type { StackControls } from '../chaos/harness/stack-controls.js';
import type { ScenarioResult } from '../chaos/run-scenario.js';
import type { Scenario } from '../chaos/scenario.js';
import { SCENARIOS } from '../chaos/scenarios/list.js';
import { SuiteRun } from '../chaos/run-suite.js';
import { buildMutant } from './mutant-build.js';
import type { Mutant } from './mutants.js';

export interface Site {
  readonly stack: StackControls;
  /** What programs run with. */
  readonly env: Environment;
  readonly signal: AbortSignal;
  readonly onRow: (row: string, seed: number) => void;
}

/**
 * - `caught`: a row is red, and says what the mutant breaks
 * - `missed`: every row stayed green
 * - `unproven`: a row is red for another reason, or could not run here
 */
type Verdict = 'caught' | 'missed' | 'unproven';

export interface MutantResult {
  readonly mutant: Mutant;
  readonly verdict: Verdict;
  /** The row that decided. */
  readonly row: string;
  readonly seed: number;
  /** What it and the checker said; empty when it was green. */
  readonly said: string;
  readonly tookMs: number;
  /** Ends of the logs of its programs. */
  readonly logs: string;
}

/** @throws Error when there is no such row */
function rowNamed(name: string): Scenario {
  const row = SCENARIOS.find((one) => one.name === name);
  if (row === undefined) throw new Error(`no row is called ${name}`);
  return row;
}

/** Runs the rows of a mutant on programs that have it, until one catches it. The checker and the rows are sound. */
export async function runMutant(mutant: Mutant, site: Site): Promise<MutantResult> {
  const startedMs = performance.now();
  const main = buildMutant(mutant, join(site.stack.servers.dir, 'builds', mutant.name));
  const elapsedMs = (): number => Math.round(performance.now() - startedMs);
  let last: MutantResult | null = null;
  for (const name of mutant.rows) {
    for (const seed of mutant.seeds ?? [1]) {
      const { result, logs } = await runOn(main, name, seed, site);
      last = { mutant, row: name, seed, logs, ...judge(result, mutant.says), tookMs: elapsedMs() };
      if (last.verdict === 'caught') return last;
    }
  }
  if (last === null) throw new Error(`${mutant.name} names no row`);
  return last;
}

/** The same row on sound programs. @returns why it is not green; null when it is */
export async function runControl(name: string, seed: number, site: Site): Promise<string | null> {
  const { result } = await runOn(undefined, name, seed, site);
  return result.outcome === 'red' ? toldBy(result) : null;
}

function judge(result: ScenarioResult, says: RegExp): Pick<MutantResult, 'verdict' | 'said'> {
  switch (result.outcome) {
    case 'green':
      return { verdict: 'missed', said: '' };
    case 'skipped':
      return { verdict: 'unproven', said: `skipped: ${result.reason}` };
    case 'red':
      return { verdict: says.test(toldBy(result)) ? 'caught' : 'unproven', said: toldBy(result) };
  }
}

const toldBy = ({ reason, findings }: ScenarioResult): string => [reason ?? '', ...findings].join('; ');

async function runOn(
  main: string | undefined,
  name: string,
  seed: number,
  { stack, env, signal, onRow }: Site,
): Promise<{ readonly result: ScenarioResult; readonly logs: string }> {
  onRow(name, seed);
  let logs = '';
  const matrix = new SuiteRun({ stack, env, main, jobs: 1, signal, onLogs: (text) => (logs += text) });
  try {
    const result = await matrix.runOne(rowNamed(name), seed);
    signal.throwIfAborted();
    return { result, logs };
  } finally {
    await matrix.endShared();
  }
}
