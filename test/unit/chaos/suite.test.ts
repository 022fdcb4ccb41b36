import { expect } from 'chai';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Sale } from '../../../src/core/sale.js';
import { NO_TRANSFERS } from '../../invariants/check-sale.js';
import type { StackControls } from '../../chaos/harness/stack-controls.js';
import type { ScenarioResult } from '../../chaos/run-scenario.js';
import { Schedule, SuiteRun } from '../../chaos/run-suite.js';
import { NO_FIGURES } from '../../chaos/scenario-sales.js';
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
  const suiteOn = (stack: object = {}): SuiteRun =>
    new SuiteRun({ stack: { servers: { dir }, ...stack } as StackControls, env: {}, jobs: 2, signal });
  const resultsOf = (...scenarios: Scenario[]): Promise<ScenarioResult[]> =>
    suiteOn().run(new Schedule(scenarios, [1]));

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

  it('fails a scenario without a sale unless it declares that', async () => {
    const [result] = await resultsOf(scenarioOf({ run, noSale: false }));
    expect(result?.reason).to.equal('the scenario has no sale: no invariant was checked');
  });

  it('is green if the fault was observed and is over, and red with the reason if it throws', async () => {
    const [green] = await resultsOf(scenarioOf({ run }));
    expect(green).to.deep.include({ outcome: 'green', reason: null, observations: ['it broke'] });
    const [red] = await resultsOf(scenarioOf({ run: () => Promise.reject(new Error('no')) }));
    expect(red).to.include({ outcome: 'red', reason: 'no' });
    const [late] = await resultsOf(scenarioOf({ timeoutMs: 10, run: () => new Promise(() => undefined) }));
    expect(late).to.include({ outcome: 'red', reason: 'it had not ended after 0.01 s' });
  });

  const sale = { saleId: '7', stock: 10, sold: 0, buckets: 1, limitPerBuyer: 1, retiredAtMs: null } as Sale;
  const snapshot = { unitsLeft: 9, requests: new Map(), buyers: new Map(), pending: [], transfers: NO_TRANSFERS };
  const audit = {
    store: {
      snapshot: () => Promise.resolve(snapshot),
      pendingCount: () => Promise.resolve(0),
      transfers: async () => NO_TRANSFERS,
    },
    repository: {
      findSale: () => Promise.resolve(sale),
      undoneReleases: () => Promise.resolve(0),
      orders: async function* () {
        yield [];
      },
    },
  };
  const fails = scenarioOf({
    run(context) {
      context.addSale(sale);
      return Promise.reject(new Error('no'));
    },
  });

  it('reads the figures once every server runs again, and reports none if it cannot read them', async () => {
    let runs = false;
    const findSale = () => (runs ? Promise.resolve(sale) : Promise.reject(new Error('MySQL is down')));
    const suite = suiteOn({
      servers: { dir, server: () => ({ kill: () => true }), up: async () => void (runs = true) },
      audit: { ...audit, repository: { ...audit.repository, findSale } },
      redis: { redis: { ping: async () => 'PONG' } },
      mysql: { query: async () => undefined },
    });
    // the scenario runs next to other scenarios and breaks no server
    const [unread] = await suite.run(new Schedule([fails], [1]));
    expect(unread).to.include({ outcome: 'red', reason: 'no', figures: null });
    const [read] = await suite.run(new Schedule([{ ...fails, alone: true }], [1]));
    expect(read).to.deep.include({ outcome: 'red', reason: 'no', figures: NO_FIGURES });
  });

  it('reports broken invariants of a red scenario', async () => {
    const [red] = await suiteOn({ audit }).run(new Schedule([fails], [1]));
    expect(red?.findings).to.deep.equal(['I4 units left differ by 1 between Redis and MySQL']);
  });

  it('runs each scenario once per seed when several stacks share the schedule', async () => {
    const seen: string[] = [];
    const names = ['R1', 'R2', 'R3'];
    const scenarios = names.map((name) => {
      const record: Scenario['run'] = async ({ seed }) => {
        seen.push(`${name} ${seed}`);
        await new Promise((resolve) => setImmediate(resolve)); // lets the other stack take its turn
      };
      return scenarioOf({ name, alone: name !== 'R3', run: record });
    });
    const schedule = new Schedule(scenarios, [7, 8]);
    const results = await Promise.all([suiteOn().run(schedule), suiteOn().run(schedule)]);
    expect(seen.sort()).to.deep.equal(names.flatMap((name) => [`${name} 7`, `${name} 8`]));
    expect(results.map(({ length }) => length)).to.not.include(0);
    expect(results.flat()).to.have.length(6);
  });
});
