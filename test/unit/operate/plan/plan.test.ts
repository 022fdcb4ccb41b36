import { expect } from 'chai';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import sinon from 'sinon';
import { REPO_DIR } from '../../../../deploy/local/stack/paths.js';
import { allowedMinutes, FAULTS, minutesInAll, OBJECTIVES } from '../../../../src/operate/plan/availability.js';
import { planCommand } from '../../../../src/operate/plan/commands.js';
import { planFor, type Load } from '../../../../src/operate/plan/plan.js';
import { readBenchReport, README_COSTS } from '../../../../src/operate/plan/unit-costs.js';

describe('seckill plan', () => {
  const valuesOf = (load: Load, costs = README_COSTS): Readonly<Record<string, number>> =>
    Object.fromEntries(planFor(load, costs).lines.map(({ what, value }) => [what, value]));
  const RUSH: Load = { tries: 1_000_000, winners: 100_000, readers: 500_000 };

  it('computes each line from its rule', () => {
    // batches are full, so that each order has its lowest cost
    const costs = { ...README_COSTS, api: { full: 100, single: 100 }, redis: { full: 10, single: 10 }, refusal: 20 };
    const values = valuesOf({ tries: 110_000, winners: 10_000, readers: 1_000_000 }, { ...costs, read: 40 });
    expect(values).to.include({
      apis: 14, // 2 × (10,000 × 100 + 100,000 × 20 + 100,000 × 40) µs
      buckets: 1,
      Redis: 2,
      workers: 2,
      MySQL: 3,
      'connections of buyers': 1_110_000,
      'connections of MySQL': 2 * 8 * 18,
      'disk of MySQL': 0.0053,
    });
    expect(values['batch']).to.be.closeTo((10_000 * 0.025) / 14, 1e-9);
    expect(values['bandwidth to buyers']).to.be.closeTo(((110_000 * 400 + 100_000 * 700) * 8) / 1e9, 1e-9);
  });

  it('doubles the apis if the number of tries doubles', () => {
    const [once, twice] = [50_000_000, 100_000_000].map((tries) => valuesOf({ tries, winners: 0, readers: 0 }).apis);
    expect(once).to.equal(3000);
    expect(twice).to.equal(6000);
  });

  it('needs more of everything for smaller batches', () => {
    const [few, many] = [valuesOf({ ...RUSH, tries: 200_000 }), valuesOf(RUSH)];
    expect(many['batch']).to.be.below(few['batch'] as number);
    expect(many['workers']).to.be.at.least(few['workers'] as number);
    const { batch = 0, apis = 0, buckets = 0 } = many;
    expect(batch).to.be.closeTo((RUSH.winners * 0.025) / apis / buckets, 1e-6);
  });

  it('names the limit that would be reached first', () => {
    const [first] = planFor(RUSH, README_COSTS).limits;
    expect(first).to.include({ what: 'limits per address and user, in one Redis slot', share: 22 });
    const sharesOf = (load: Load) => planFor(load, README_COSTS).limits.map(({ share }) => share);
    for (const load of [RUSH, { tries: 2000, winners: 2000, readers: 0 }]) {
      expect(sharesOf(load)).to.deep.equal(sharesOf(load).toSorted((one, other) => other - one));
    }
  });

  it('uses the figures in bench/README.md and in the pages about sizing', () => {
    const readme = readFileSync(join(REPO_DIR, 'bench/README.md'), 'utf8');
    const { api, broker, mysql, worker, keeper, redis, limitsInRedis, deductsPerSecond, rowsPerSecond } = README_COSTS;
    const parts = `api ${api.full}, broker ${broker.full}, MariaDB ${mysql.full}, worker ${worker.full}`;
    expect(readme).to.include(`${parts}, keeper ${keeper.full}, Redis ${redis.full}.`);
    expect(readme).to.include(`limits of address, user and all 16 (${limitsInRedis})`);
    expect(readme).to.include(`deduct ${deductsPerSecond.toLocaleString('en')} purchases in batches of 128`);
    expect(readme).to.include(`insert ${rowsPerSecond.toLocaleString('en')} rows in transactions of 16 × 128`);
    for (const { source } of FAULTS.filter((fault) => fault.source.startsWith('bench/chaos-report.md'))) {
      const report = readFileSync(join(REPO_DIR, 'bench/chaos-report.md'), 'utf8');
      const [, scenario] = source.split(', ') as [string, string];
      const { gapS } = FAULTS.find((fault) => fault.source === source) as { gapS: number };
      const rows = report.split('\n').filter((row) => row.startsWith(`| ${scenario} `));
      expect(
        rows.map((row) => Number(row.split('|').at(-2))),
        source,
      ).to.deep.equal([gapS]);
    }
  });

  it('allows twenty-two minutes a month today, and less than five for 99.99 %', () => {
    expect(allowedMinutes(OBJECTIVES.today)).to.be.closeTo(21.9, 0.1);
    expect(allowedMinutes(OBJECTIVES.next)).to.be.closeTo(4.4, 0.1);
    expect(minutesInAll()).to.be.within(allowedMinutes(OBJECTIVES.next), allowedMinutes(OBJECTIVES.today));
  });

  const cpuMicros = { api: 1, worker: 2, keeper: 3, redis: 4, mariadb: 5, broker: 6, 'load generator': 7 };
  const report = (...results: object[]): string => JSON.stringify({ startedAt: '2026-11-28T10:00:00Z', results });

  it('takes measured costs from a benchmark report, and other costs from the README', () => {
    const win = { kind: 'load', scenario: 'win', cpuMicros };
    const alone = { kind: 'load', scenario: 'no-group-commit', cpuMicros: { ...cpuMicros, api: 900 } };
    const soldOut = { kind: 'load', scenario: 'sold-out', cpuMicros: { ...cpuMicros, api: 33 } };
    const limits = {
      kind: 'limits',
      scenario: 'limits',
      limits: [
        { name: 'deduct, batches of 192', perSecond: 50_000 },
        { name: 'deduct, batches of 1', perSecond: 1 },
        { name: 'insert, 16 × 192 rows', perSecond: 40_000 },
      ],
    };
    const crowd = { kind: 'limits', scenario: 'crowd', limits: [{ name: 'sale', perSecond: 1, micros: { api: 25 } }] };
    expect(readBenchReport(report(win, alone, soldOut, limits, crowd, { scenario: 'paired' }))).to.deep.include({
      source: 'bench of 2026-11-28T10:00:00Z, or bench/README.md for what it lacks',
      ...{ api: { full: 1, single: 900 }, mysql: { full: 5, single: 5 }, refusal: 33, read: 25 },
      ...{ deductsPerSecond: 50_000, rowsPerSecond: 40_000, limitsInRedis: README_COSTS.limitsInRedis },
    });
    expect(readBenchReport(report(win))).to.deep.include({
      ...{ worker: { full: 2, single: README_COSTS.worker.single }, refusal: README_COSTS.refusal },
      rowsPerSecond: README_COSTS.rowsPerSecond,
    });
  });

  it('refuses a file that is not a benchmark report, and says why', () => {
    const { api: _api, ...withoutApi } = cpuMicros;
    for (const [text, why] of [
      ['{', /^is not JSON$/],
      ['[]', /^is not a report of .*: document: /],
      [report(), /^has no result of the scenario `win`$/],
      [report({ scenario: 'win', cpuMicros: withoutApi }), /: cpuMicros\.api: /],
      [report({ scenario: 'win', cpuMicros }, { scenario: 'sold-out' }), /: cpuMicros: /],
    ] as const) {
      expect(readBenchReport(text), text).to.match(why);
    }
  });

  describe('on the command line', () => {
    let lines: string[];
    let folder: string;
    beforeEach(() => {
      lines = [];
      folder = mkdtempSync(join(tmpdir(), 'seckill-plan-'));
      sinon.stub(console, 'log').callsFake((line: string) => void lines.push(line));
    });
    afterEach(() => {
      sinon.restore();
      rmSync(folder, { recursive: true });
    });
    const run = (...words: string[]): Promise<unknown> => {
      const command = planCommand()
        .exitOverride()
        .configureOutput({ writeErr: () => undefined });
      return command.parseAsync(words, { from: 'user' });
    };
    const errorOf = async (...words: string[]): Promise<string> =>
      run(...words).then(
        () => 'no error',
        (error: Error) => error.message,
      );

    it('prints the plan for a person and for a program', async () => {
      await run('--tries', '1000000', '--winners', '100000', '--readers', '500000');
      expect(lines[0]).to.match(/^1,000,000 tries per second, 100,000 winners and 500,000 open pages need:\n {2}apis /);
      expect(lines[0]).to.match(/99\.95 % allows 22, 99\.99 % allows 4\.4$/);
      const file = join(folder, 'bench.json');
      writeFileSync(file, report({ scenario: 'win', cpuMicros }));
      await run('--tries', '2000', '--winners', '1000', '--measured', file, '--json');
      const printed = JSON.parse(lines[1] as string);
      expect(printed).to.have.all.keys('load', 'lines', 'limits', 'availability');
      expect(printed.lines[0]).to.include({
        what: 'apis',
        value: 2,
        source: 'bench of 2026-11-28T10:00:00Z, or bench/README.md for what it lacks',
      });
    });

    it('refuses numbers that make no sense and files that it cannot read', async () => {
      expect(await errorOf('--tries', '10', '--winners', '11')).to.equal('--winners 11 must not exceed --tries 10.');
      expect(await errorOf('--tries', 'x', '--winners', '1')).to.match(/must be a whole number from 1 to /);
      expect(await errorOf('--winners', '1')).to.match(/required option '--tries/);
      const load = ['--tries', '10', '--winners', '1', '--measured'];
      expect(await errorOf(...load, join(folder, 'none'))).to.match(/none cannot be read: /);
      const file = join(folder, 'other.json');
      writeFileSync(file, '{}');
      expect(await errorOf(...load, file)).to.match(
        /other\.json is not a report of `npm run bench -- --json`: startedAt: /,
      );
    });
  });
});
