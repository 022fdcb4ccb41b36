import { expect } from 'chai';
import { closeConnections } from '../chaos/harness/http.js';
import type { ScenarioResult } from '../chaos/run-scenario.js';
import { Schedule, SuiteRun } from '../chaos/run-suite.js';
import type { ScenarioFigures } from '../chaos/scenario-sales.js';
import type { Scenario } from '../chaos/scenario.js';
import { seedOfRun } from './seed.js';
import { openTestStack, type TestStack } from './stack.js';

/** Scenarios mostly wait, but the programs of all scenarios at once would starve the broker. */
const JOBS = 3;
const SEED = seedOfRun();

const titleOf = ({ name, title, also = [] }: Scenario): string => `${title} [${[name, ...also].join(' ')}]`;

/** Returns whether the scenario matches --grep. */
function isWanted(scenario: Scenario): boolean {
  const at = process.argv.findIndex((arg) => arg === '--grep' || arg === '-g');
  return at === -1 || new RegExp(process.argv[at + 1] ?? '').test(`the fault matrix ${titleOf(scenario)}`);
}

function sentenceOf({ requests, accepted, orders, failedRows, oversold, duplicates, lost }: ScenarioFigures): string {
  const counts = `requests ${requests}, accepted ${accepted}, orders ${orders}, failed ${failedRows}`;
  return `${counts}, oversold ${oversold}, duplicate ${duplicates}, lost ${lost}`;
}

/**
 * Declares a test for each scenario inside a `describe` named "the fault matrix". Scenarios that may share servers and
 * programs run in parallel.
 */
export function testScenarios(scenarios: readonly Scenario[]): void {
  const wanted = scenarios.filter(isWanted);
  const [beside, alone] = [wanted.filter((one) => !one.alone), wanted.filter((one) => one.alone)];
  const aborting = new AbortController();
  const ended = new Map<string, (result: ScenarioResult) => void>();
  let stack: TestStack;
  let suite: SuiteRun;

  before(async () => {
    console.log(`    seed ${SEED}`);
    stack = await openTestStack();
    suite = new SuiteRun({
      stack,
      env: { ...process.env, ...stack.env },
      jobs: JOBS,
      signal: aborting.signal,
      onEnd: (result) => ended.get(result.scenario)?.(result),
      onLogs: (text) => console.error(text),
    });
  });
  after(async () => {
    aborting.abort(new Error('the tests are over'));
    await suite?.endShared();
    closeConnections();
    await stack?.close();
  });

  function expectGreen(test: Mocha.Context, result: ScenarioResult): void {
    const { scenario, outcome, reason, figures, recoveryMs, tookMs } = result;
    if (outcome === 'skipped') {
      console.log(`      skipped: ${reason}`);
      return test.skip();
    }
    const counts = figures === null ? 'Redis or MySQL could not be read' : sentenceOf(figures);
    const seconds = (ms: number | null): string => ((ms ?? Number.NaN) / 1000).toFixed(1);
    console.log(`      · ${counts}; took ${seconds(tookMs)} s, at rest after ${seconds(recoveryMs)} s`);
    const again = `npm run chaos -- run ${scenario} --seed ${SEED}`;
    expect(outcome, `${reason}; again: ${again}`).to.equal('green');
  }

  describe('in parallel', () => {
    const results = new Map(
      beside.map(({ name }) => [name, new Promise<ScenarioResult>((resolve) => ended.set(name, resolve))] as const),
    );
    before(() => {
      void suite.run(new Schedule(beside, [SEED]));
    });
    for (const scenario of beside) {
      it(titleOf(scenario), async function () {
        expectGreen(this, (await results.get(scenario.name)) as ScenarioResult);
      });
    }
  });

  describe('in sequence', () => {
    for (const scenario of alone) {
      it(titleOf(scenario), async function () {
        expectGreen(this, await suite.runOne(scenario, SEED));
      });
    }
  });
}
