import { expect } from 'chai';
import type { SaleCheck, SaleFigures } from '../../invariants/check-sale.js';
import { formatNumber, judgeGoals, reportNotes, reportTable } from '../../../bench/report.js';
import { isBad, loadFigures, type LoadFigures } from '../../../bench/results.js';
import type { ConsolesFigures } from '../../../bench/scenarios/consoles.js';
import { compare, turnsOf, type Pair } from '../../../bench/scenarios/paired.js';
import { median } from '../../../bench/session/cpu.js';
import { judgeSale } from '../../../bench/session/stores.js';

const figures = (changes: Partial<SaleFigures> = {}): SaleCheck => ({
  figures: {
    stock: 1000,
    sold: 100,
    unitsLeft: 900,
    rows: 100,
    liveRows: 100,
    failedRows: 0,
    oversold: 0,
    duplicates: 0,
    lost: 0,
    inTransit: 0,
    difference: 0,
    pendingBatches: 0,
    ...changes,
  },
  findings: [],
});

const load = (changes: Partial<LoadFigures> = {}): LoadFigures => ({
  ...loadFigures(
    'win',
    'a test',
    {
      measured: {
        load: {
          sent: 100,
          answered: 100,
          accepted: 100,
          errors: 0,
          startedAtMs: 0,
          endedAtMs: 1000,
          latency: { p50: 1, p99: 2, p999: 3, max: 4 },
          ranOutOfBuyers: false,
          cpuSeconds: 0.1,
        },
        landed: 100,
        landedSeconds: 2,
        answeredSeconds: 1,
        idleCores: 0,
        yardstickMicros: 2,
        batchSizeMean: 12.5,
        answersByCode: {},
        cpuSeconds: {
          api: 0.5,
          worker: 0.2,
          keeper: 0,
          redis: 0.1,
          mariadb: 0.3,
          broker: 0.4,
          'load generator': 0.1,
          bench: 0,
          others: 0,
        },
      },
      verdict: judgeSale({ accepted: 100, unanswered: 0 }, figures()),
      per: 'accepted',
    },
    {},
  ),
  ...changes,
});

describe('check of a sale after its load (I1 to I5)', () => {
  const problemsOf = (answers: { accepted: number; unanswered: number }, check: SaleCheck): readonly string[] =>
    judgeSale(answers, check).problems;

  it('as many orders as accepted requests: passed', () => {
    expect(problemsOf({ accepted: 100, unanswered: 0 }, figures())).to.deep.equal([]);
  });

  it('an accepted request without an order is lost, also when Redis does not know the buyer', () => {
    const verdict = judgeSale({ accepted: 103, unanswered: 0 }, figures());
    expect(verdict.lost).to.equal(3);
    expect(verdict.problems).to.deep.equal(['3 accepted purchases have no order']);
  });

  it('an order without an accepted request fails the check, but for requests without an answer', () => {
    expect(problemsOf({ accepted: 98, unanswered: 2 }, figures())).to.deep.equal([]);
    expect(problemsOf({ accepted: 97, unanswered: 2 }, figures())).to.deep.equal([
      '1 orders belong to no accepted request',
    ]);
  });

  it('every broken figure and finding has its sentence', () => {
    const check = figures({ oversold: 1, duplicates: 1, lost: 1, difference: 1, failedRows: 1, pendingBatches: 1 });
    const findings = [{ invariant: 'I4', detail: 'a buyer counts 2 units' } as const];
    expect(problemsOf({ accepted: 100, unanswered: 0 }, { ...check, findings })).to.have.length(7);
  });
});

describe('figures of a scenario', () => {
  it('landed/s counts the time until the last order is in MySQL, accepted/s until the last answer', () => {
    expect(load()).to.include({ acceptedPerSecond: 100, landedPerSecond: 50 });
  });

  it('CPU is reported per purchase, in µs', () => {
    expect(load().cpuMicros).to.include({ api: 5000, keeper: 0, 'load generator': 1000 });
  });

  it('a failed check makes the bench fail', () => {
    expect(isBad(load())).to.equal(false);
    expect(isBad(load({ verdict: judgeSale({ accepted: 101, unanswered: 0 }, figures()) }))).to.equal(true);
  });
});

describe('goals', () => {
  it('only those of scenarios that ran', () => {
    expect(judgeGoals([load({ landedPerSecond: 10_000 })])).to.deep.equal([
      { goal: 'win, landed/s ≥ 10,000', measured: 10_000, met: true },
    ]);
  });

  it('win against no-group-commit, by rate and by p99', () => {
    const single = load({
      scenario: 'no-group-commit',
      landedPerSecond: 1500,
      latency: { p50: 1, p99: 2, p999: 3, max: 4 },
    });
    const goals = judgeGoals([load({ landedPerSecond: 12_000 }), single]);
    expect(goals.map(({ measured, met }) => [measured, met])).to.deep.equal([
      [12_000, true],
      [8, true],
      [2, false],
    ]);
  });
});

describe('goals of admission', () => {
  const attacked = (share: number, p99: number, longestMs: number, units = share) =>
    judgeGoals([
      load({
        scenario: 'attack',
        extra: {
          'honest: share of their rate without attack': share,
          'honest: p99 of winners, ms': p99,
          'honest: share of their units without attack': units,
          'slow headers: longest, ms': longestMs,
          'slow headers: may last, ms': 6500,
        },
      }),
    ]).map(({ met }) => met);

  it('honest buyers keep four fifths of their rate, 99 of 100 wait less than 100 ms, and slow clients are closed', () => {
    expect(attacked(0.8, 99.9, 6500)).to.deep.equal([true, true, true]);
    expect(attacked(0.79, 99.9, 6500)).to.deep.equal([false, true, true]);
    expect(attacked(1.1, 99.9, 6500, 0.79), 'fewer units, in less time').to.deep.equal([false, true, true]);
    expect(attacked(0.8, 100, 6500)).to.deep.equal([true, false, true]);
    expect(attacked(0.8, 99.9, 6501)).to.deep.equal([true, true, false]);
  });

  it('sold-out behind every layer has a goal of its own', () => {
    const met = (admission: string) =>
      judgeGoals([load({ scenario: 'sold-out', extra: { 'share of bare node:http': 0.6, admission } })])[0]?.met;
    expect([met('on'), met('off')]).to.deep.equal([true, false]);
  });
});

describe('table', () => {
  it('has a row per figure and a column per scenario; cells that make no sense stay empty', () => {
    const limits = { name: 'insert, 1 row', perSecond: 1234.5, unit: 'rows/s' };
    const table = reportTable([
      load({ extra: { 'share of bare node:http': 0.714 } }),
      { kind: 'limits', scenario: 'limits', limits: [limits] },
    ]).split('\n');
    expect(table[0]).to.match(/^ +win +limits$/);
    expect(table.find((line) => line.startsWith('landed/s'))).to.match(/^landed\/s +50$/);
    expect(table.find((line) => line.startsWith('share of bare'))).to.match(/ 0\.71$/);
    expect(table.find((line) => line.startsWith('insert, 1 row: rows/s'))).to.match(/ 1,235$/);
    expect(table.at(-1)).to.match(/^insert/);
  });

  it('numbers keep the digits that matter', () => {
    expect([12_345.6, 123, 42.42, 0.714, 0, 7].map(formatNumber)).to.deep.equal([
      '12,346',
      '123',
      '42.4',
      '0.71',
      '0',
      '7',
    ]);
  });
});

describe('notes', () => {
  it('show how busy the machine was before, and every goal', () => {
    const machine = {
      cpu: 'a CPU',
      cores: 2,
      memoryGib: 24,
      os: 'an OS',
      durability: {},
      settings: {},
      versions: { node: '20', redis: '6', mariadb: '11', rocketmq: '5' },
    };
    const notes = reportNotes({
      startedAt: 'now',
      commit: null,
      loadGenerator: 'wrk',
      warmUpSeconds: 10,
      machine,
      loadAverageBefore: 8.214,
      results: [load()],
      goals: [{ goal: 'a goal', measured: 2, met: false }],
    });
    expect(notes).to.include('\nload average before the run: 8.21\n').and.include('\ngoal: a goal: NOT met (2)');
  });
});

describe('statistics', () => {
  it('median', () => {
    expect([median([3, 1, 2]), median([4, 1, 2, 3]), median([])]).to.deep.equal([2, 2.5, 0]);
  });
});

describe('two builds in turn', () => {
  const slice = (apiMicros: number, loadMicros = 20) => ({ apiMicros, loadMicros, accepted: 40_000 });
  const pair = (here: number, there: number): Pair => ({ here: slice(here), there: slice(there) });

  it('each is as often the first of its pair', () => {
    expect(turnsOf(3)).to.deep.equal([
      ['here', 'there'],
      ['there', 'here'],
      ['here', 'there'],
    ]);
  });

  it('a machine that gets twice as slow meanwhile changes no ratio', () => {
    const { ratio } = compare('1a2b3c4', [pair(50.5, 50), pair(75, 75), pair(101, 100)]);
    expect(ratio).to.deep.equal({ min: 1, median: 1.01, max: 1.01 });
  });

  it('a machine that is slow for one slice alone changes no ratio: the load generator is as slow', () => {
    expect(compare('1a2b3c4', [{ here: slice(200, 40), there: slice(100, 20) }]).ratio.median).to.equal(1);
  });

  it('the goal is judged by the median', () => {
    const goal = (...pairs: Pair[]) =>
      judgeGoals([{ kind: 'paired', scenario: 'paired', comparison: compare('old', pairs) }]);
    expect(goal(pair(101, 100), pair(101, 100), pair(150, 100))[0]).to.include({ measured: 1.01, met: true });
    expect(goal(pair(103, 100))[0]).to.include({ met: false });
  });

  it('consoles that take more than 2 % of a core, then a goal is missed', () => {
    const figuresOf = (addedPercent: number): ConsolesFigures => ({
      kind: 'consoles',
      scenario: 'consoles',
      consoles: 50,
      mix: '49 on Live; 1 on Health',
      rate: 500,
      pairs: [{ withoutPercent: 10, withPercent: 10 + addedPercent, snapshotsPerSecond: 1, requestsPerSecond: 7.5 }],
      addedPercent,
    });
    expect(judgeGoals([figuresOf(1.9)])[0]).to.include({ measured: 1.9, met: true });
    expect(judgeGoals([figuresOf(2.1)])[0]).to.include({ measured: 2.1, met: false });
    expect(reportTable([figuresOf(1.25)])).to.match(/pair 1 .*10\.00.*11\.25.*1\.25.*1\.00.*7\.50/);
    expect(judgeGoals([figuresOf(1)])[0]?.goal).to.include('50 open consoles (49 on Live; 1 on Health)');
  });
});
