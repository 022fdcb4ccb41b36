import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Environment } from '../../src/core/config/load.js';
import { bootOwnStack } from '../chaos/own-stacks.js';
import { closeConnections } from '../chaos/harness/http.js';
import { shortenWaits } from '../chaos/harness/wait.js';
import { openControls, type StackControls } from '../chaos/harness/stack-controls.js';
import type { ScenarioResult } from '../chaos/run-scenario.js';
import { SuiteRun } from '../chaos/run-suite.js';
import type { Scenario } from '../chaos/scenario.js';
import { SCENARIOS } from '../chaos/scenarios/list.js';
import { progressStyle, showProgress } from '../../deploy/local/stack-progress.js';
import { SERVER_NAMES } from '../../deploy/local/stack/servers/server-spec.js';
import type { Mutant } from './mutants.js';
import { MUTANTS_DIR, plantInBuild } from './plant.js';
import type { MutantResult } from './report.js';

/** Longer than any step of a scenario without a bug. */
const WAIT_MS = 40_000;

/** The servers that all mutants share, and the environment of a run. */
export interface ChaosSite {
  readonly stack: StackControls;
  /** Environment of the programs. */
  readonly env: Environment;
  readonly signal: AbortSignal;
}

/** Runs `work` on separate servers, and removes the servers and their data afterwards. */
export async function onOwnServers<T>(signal: AbortSignal, work: (site: ChaosSite) => Promise<T>): Promise<T> {
  const { stack, stop } = await showProgress(progressStyle(false), ['artifacts', ...SERVER_NAMES], (onProgress) =>
    bootOwnStack(MUTANTS_DIR, onProgress, signal, { timing: 'test' }),
  );
  const stray = (error: unknown): void => console.log(`An error outside of any scenario: ${String(error)}`);
  shortenWaits(WAIT_MS);
  process.on('uncaughtException', stray).on('unhandledRejection', stray); // the servers must not be left running
  try {
    const controls = await openControls(stack.dir, stack.env());
    try {
      return await work({ stack: controls, env: { ...process.env, ...stack.env() }, signal });
    } finally {
      closeConnections();
      await controls.close();
    }
  } finally {
    await stop();
    for (const left of ['data', 'built']) rmSync(join(MUTANTS_DIR, left), { recursive: true, force: true });
  }
}

/** Runs the unchanged scenarios of a mutant on its programs, until a scenario catches the mutant. */
export async function runByChaos(mutant: Mutant, site: ChaosSite): Promise<MutantResult> {
  const { chaos } = mutant;
  if (chaos === undefined) throw new Error(`${mutant.name} is not for chaos`);
  const startedMs = performance.now();
  const main = await plantInBuild(mutant);
  let last: MutantResult | null = null;
  for (const name of chaos.scenarios) {
    for (const seed of chaos.seeds ?? [1]) {
      const { result, logs } = await runScenario(main, name, seed, site);
      const tookMs = Math.round(performance.now() - startedMs);
      last = { mutant, by: 'chaos', where: name, seed, logs, ...judge(result, chaos.says), tookMs };
      if (last.verdict === 'caught') return last;
    }
  }
  if (last === null) throw new Error(`${mutant.name} names no scenario`);
  return last;
}

/** Runs the scenario on programs without a bug. @returns null if green, or the reason */
export async function runControl(name: string, seed: number, site: ChaosSite): Promise<string | null> {
  const { result } = await runScenario(undefined, name, seed, site);
  return result.outcome === 'red' ? saidBy(result) : null;
}

function judge(result: ScenarioResult, says: RegExp): Pick<MutantResult, 'verdict' | 'said'> {
  switch (result.outcome) {
    case 'green':
      return { verdict: 'missed', said: '' };
    case 'skipped':
      return { verdict: 'unproven', said: `skipped: ${result.reason}` };
    case 'red':
      return { verdict: says.test(saidBy(result)) ? 'caught' : 'unproven', said: saidBy(result) };
  }
}

const saidBy = ({ reason, findings }: ScenarioResult): string => [reason ?? '', ...findings].join('; ');

async function runScenario(
  main: string | undefined,
  name: string,
  seed: number,
  { stack, env, signal }: ChaosSite,
): Promise<{ readonly result: ScenarioResult; readonly logs: string }> {
  console.log(`  ${name}, seed ${seed} …`);
  let logs = '';
  const suite = new SuiteRun({ stack, env, main, jobs: 1, signal, onLogs: (text) => (logs += text) });
  try {
    const result = await suite.runOne(scenarioNamed(name), seed);
    signal.throwIfAborted();
    return { result, logs };
  } finally {
    await suite.endShared();
  }
}

/** @throws Error if there is no such scenario */
function scenarioNamed(name: string): Scenario {
  const scenario = SCENARIOS.find((one) => one.name === name);
  if (scenario === undefined) throw new Error(`there is no scenario ${name}`);
  return scenario;
}
