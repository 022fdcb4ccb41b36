import { expect } from 'chai';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { StackControls } from '../../chaos/harness/stack-controls.js';
import type { ScenarioResult } from '../../chaos/run-scenario.js';
import { Schedule, SuiteRun } from '../../chaos/run-suite.js';
import type { Scenario } from '../../chaos/scenario.js';

const scenarioOf = (parts: Partial<Scenario>): Scenario => ({
  name: 'T1',
  title: 'something breaks',
  noSale: true,
  run: () => Promise.resolve(),
  ...parts,
});

describe('chaos suite', () => {
  let dir: string;
  before(() => (dir = mkdtempSync(join(tmpdir(), 'seckill-chaos-'))));
  after(() => rmSync(dir, { recursive: true, force: true }));

  const { signal } = new AbortController();
  const resultsOf = (...scenarios: Scenario[]): Promise<ScenarioResult[]> =>
    new SuiteRun({ stack: { servers: { dir } } as StackControls, env: {}, jobs: 2, signal }).run(
      new Schedule(scenarios, [1]),
    );

  it('fails a scenario if its fault was not observed or never ended', async () => {
    const [silent] = await resultsOf(scenarioOf({}));
    expect(silent).to.include({ outcome: 'red', reason: 'no fault was observed: the scenario proved nothing' });
    const [endless] = await resultsOf(scenarioOf({ run: (context) => context.observed('it broke', () => true) }));
    expect(endless).to.include({ outcome: 'red', reason: 'the scenario never called faultEnded' });
  });

  const run: Scenario['run'] = async (context) => {
    await context.observed('it broke', () => true);
    context.faultEnded();
  };

  it('fails a scenario without a sale unless the scenario declares this', async () => {
    const [result] = await resultsOf(scenarioOf({ run, noSale: false }));
    expect(result?.reason).to.equal('the scenario has no sale: no invariant was checked');
  });

  it('is green if the fault was observed and is over, and red if the scenario throws', async () => {
    const [green] = await resultsOf(scenarioOf({ run }));
    expect(green).to.deep.include({ outcome: 'green', reason: null, observations: ['it broke'] });
    const [red] = await resultsOf(scenarioOf({ run: () => Promise.reject(new Error('no')) }));
    expect(red).to.include({ outcome: 'red', reason: 'no' });
    const [late] = await resultsOf(scenarioOf({ timeoutMs: 10, run: () => new Promise(() => undefined) }));
    expect(late).to.include({ outcome: 'red', reason: 'it had not ended after 0.01 s' });
  });
});
