import { expect } from 'chai';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { OWN_SERVERS, VERSION_SETTINGS, VERSIONED_SERVERS, VERSIONS } from '../../deploy/local/stack/versions.js';
import { SCENARIOS as CHAOS } from '../chaos/scenarios/list.js';
import { NODE_VERSIONS } from '../matrix/node-versions.js';
import { cellsOf, countsOf, readMatrix, resultOf, withRow, writeMatrix, type RowResult } from '../matrix/results.js';
import { mysqlContracts, rowOf, ROWS, runsOf, SCENARIOS, settingsOf, suitesOf, SUITES } from '../matrix/rows.js';
import { readOptions } from '../runner/options.js';

const ABOUT = { row: rowOf({}), short: false, commit: 'c0ffee00', endedAtMs: Date.UTC(2026, 10, 26), tookMs: 90_000 };
const folder = (passed: number, failed = 0, skipped = 0) => ({ passed, failed, skipped, tookMs: 1000 });

describe('the rows of the matrix', () => {
  it('have each version of each server, and each Node, at least once', () => {
    for (const server of VERSIONED_SERVERS) {
      expect(new Set(ROWS.map((row) => row[server])), server).to.include.all.keys(...VERSIONS[server]);
    }
    expect(new Set(ROWS.map(({ node }) => node))).to.have.all.keys('this', ...NODE_VERSIONS);
  });

  it('run unit tests where a Node is chosen, and what meets a server everywhere', () => {
    expect(suitesOf(rowOf({ node: '22' }))).to.deep.equal(SUITES);
    expect(suitesOf(rowOf({ mysql: '8.0' }))).to.deep.equal(['contract', 'lua', 'integration', 'scenario']);
  });

  it('name scenarios that exist and are quick, and find each by its title', () => {
    const [, scenarios] = runsOf(SUITES, false);
    const { folders, fileParts, mochaArgs } = readOptions(scenarios as string[]);
    expect([folders, fileParts]).to.deep.equal([['scenario'], ['scenarios.test']]);
    const pattern = new RegExp(mochaArgs[1] as string);
    const found = CHAOS.filter(({ name, title, also = [] }) => pattern.test(`${title} [${[name, ...also].join(' ')}]`));
    expect(found.map(({ name }) => name)).to.have.members([...SCENARIOS]);
    expect(found.every(({ fast }) => fast)).to.equal(true);
  });

  it('are arguments that npm test takes, also for a part', () => {
    const [rest] = runsOf(['lua', 'contract'], false);
    expect(readOptions(rest as string[]).folders).to.have.members(['contract', 'lua']);
    const [short, ...more] = runsOf(['contract', 'integration'], true);
    expect(more).to.deep.equal([]);
    const { folders, fileParts } = readOptions(short as string[]);
    expect(folders).to.have.members(['contract', 'integration']);
    expect(fileParts).to.deep.equal([...mysqlContracts(), 'test/integration/one-purchase.test.ts']);
    expect(mysqlContracts()).to.include.members(
      ['migrate', 'mysql-faults', 'query-plans', 'order-repository'].map((stem) => `test/contract/${stem}.test.ts`),
    );
    expect(mysqlContracts()).not.to.include('test/contract/redis-probe.test.ts');
  });

  it('reach the stack by its settings, before a server of one’s own that the environment names', () => {
    const env = { PATH: '/bin', [OWN_SERVERS.mysql]: '/own', [OWN_SERVERS.redis]: '/other' };
    const settings = settingsOf(rowOf({ mysql: '8.0', redis: 'own' }), env);
    expect(settings).to.deep.equal({
      PATH: '/bin',
      [VERSION_SETTINGS.mysql]: '8.0',
      [VERSION_SETTINGS.rocketmq]: '5.4',
      [OWN_SERVERS.redis]: '/other',
    });
  });
});

describe('the table of the matrix', () => {
  const versions = { Node: '22.1.0', Valkey: '8.1.1', MariaDB: '11.4.5-MariaDB', RocketMQ: '5.4.0' };
  const failure = { title: 'a test', reason: 'it differs' };
  const run = (folders: object, failures: object[] = []) =>
    ({ title: 'npm test', reason: '', results: { folders, failures, versions } }) as never;

  it('adds the runs of a row, says what the servers said, and leaves a line for what was not run', () => {
    const row = resultOf([run({ contract: folder(600, 0, 2), lua: folder(90) }), run({ scenario: folder(6) })], ABOUT);
    expect(cellsOf(row)).to.deep.equal([
      'Node 22.1.0, Valkey 8.1.1, MariaDB 11.4.5, RocketMQ 5.4.0',
      ...['–', '600, 2 skipped', '90', '–', '6'],
      ...['1.5', '2026-11-26', 'c0ffee00'],
    ]);
    expect(countsOf([row])).to.deep.equal({ passed: 696, failed: 0, skipped: 2 });
  });

  it('shows failures, and one that belongs to no test, or a run that wrote nothing', () => {
    const failed = resultOf([run({ contract: folder(600, 1) }, [failure])], ABOUT);
    expect(cellsOf(failed)[2]).to.equal('600 of 601, 1 FAILED');
    expect(countsOf([failed])).to.deep.equal({ passed: 600, failed: 1, skipped: 0 });
    const unbooted = resultOf([run({}, [failure])], ABOUT);
    expect(cellsOf(unbooted)[0]).to.match(/ FAILED$/);
    const dead = resultOf([{ title: 'npm test', results: null, reason: 'it died' }], ABOUT);
    expect(cellsOf(dead)[0]).to.equal('MySQL mariadb-11.4, Redis 6.2, RocketMQ 5.4, Node this FAILED');
    expect(countsOf([unbooted, dead]).failed).to.equal(2);
  });

  it('keeps rows of earlier runs, and replaces one that is run again where it stands', () => {
    const dir = mkdtempSync(join(tmpdir(), 'seckill-matrix-'));
    try {
      const file = join(dir, 'deep', 'results.json');
      expect(readMatrix(file)).to.deep.equal([]);
      const [one, other] = [rowOf({}), rowOf({ mysql: '8.0' })].map((row) => resultOf([], { ...ABOUT, row }));
      writeMatrix(file, withRow(withRow([], one as RowResult), other as RowResult));
      const again = resultOf([run({ lua: folder(1) })], ABOUT);
      const short = { ...again, short: true };
      writeMatrix(file, withRow(withRow(readMatrix(file), again), short));
      expect(readMatrix(file)).to.deep.equal([again, other, short]);
    } finally {
      rmSync(dir, { recursive: true, force: true });
    }
  });
});
