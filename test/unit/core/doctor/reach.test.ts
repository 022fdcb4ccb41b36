import { expect } from 'chai';
import { kindOfAddress, type AddressKind } from '../../../../src/core/doctor/reach.js';
import { startProblems } from '../../../../src/core/doctor/check.js';
import { MYSQL_CHECKS, MYSQL_START_CHECKS } from '../../../../src/core/doctor/mysql-checks.js';
import { REDIS_START_CHECKS } from '../../../../src/core/doctor/redis-checks.js';
import { GROUPS_OF_CHECKS } from '../../../../src/operate/doctor/report.js';
import { judgeVersion } from '../../../../src/core/doctor/versions.js';
import { mysql, redisServer } from '../../../helpers/doctor-facts.js';

describe('doctor: location of an address', () => {
  for (const [text, kind] of Object.entries({
    '127.0.0.1': 'loopback',
    '127.8.9.1': 'loopback',
    '::1': 'loopback',
    '::ffff:127.0.0.1': 'loopback',
    localhost: 'loopback',
    '10.1.2.3': 'private',
    '172.16.0.1': 'private',
    '172.31.255.255': 'private',
    '192.168.7.7': 'private',
    '100.64.1.1': 'private',
    'fd00::7': 'private',
    'fe80::1': 'private',
    '172.32.0.1': 'public',
    '8.8.8.8': 'public',
    '::ffff:8.8.8.8': 'public',
    '2001:4860:4860::8888': 'public',
    '0.0.0.0': 'every',
    '::': 'every',
    'db.internal': 'name',
  } satisfies Record<string, AddressKind>)) {
    it(`${text} is ${kind}`, () => expect(kindOfAddress(text)).to.equal(kind));
  }
});

describe('doctor: versions', () => {
  const verdictOf = (version: string): string => judgeVersion('mariadb', version).verdict;

  it('compares versions number by number and ignores any suffix', () => {
    expect(verdictOf('11.4.5-MariaDB-1:11.4.5+maria~deb12-log')).to.equal('ok');
    expect(verdictOf('11.40.1')).to.equal('risky');
    expect(verdictOf('10.6')).to.equal('risky');
    expect(verdictOf('10.5.99')).to.equal('wrong');
    expect(verdictOf('9.99')).to.equal('wrong');
    expect(verdictOf('unknown')).to.equal('wrong');
  });
});

describe('doctor: checks that stop a program when it starts', () => {
  it('returns each check that would break the program, with advice', () => {
    const facts = mysql({ timeZone: 'SYSTEM', otherEngines: ['orders MyISAM'], readOnly: true, flushAtCommit: 0 });
    const problems = startProblems(MYSQL_CHECKS, facts);
    expect(problems).to.deep.equal(startProblems(MYSQL_START_CHECKS, facts));
    expect(problems).to.have.length(2);
    expect(problems[0]).to.match(/time zone SYSTEM instead of \+00:00\. Every connection .*\.$/);
    expect(problems[1]).to.match(/orders MyISAM/);
    expect(startProblems(MYSQL_CHECKS, mysql({ readOnly: true })), 'this passes by itself').to.deep.equal([]);
  });

  it('covers exactly these checks', () => {
    const all = GROUPS_OF_CHECKS.flatMap(({ checks }) => [...checks]);
    expect(all.filter(({ stopsPrograms }) => stopsPrograms === true).map(({ id }) => id)).to.deep.equal([
      ...['redis.eviction', 'redis.append-only', 'redis.clock'],
      ...['mysql.isolation', 'mysql.sql-mode', 'mysql.time-zone', 'mysql.packet', 'mysql.binlog-format'],
      ...['mysql.collations', 'mysql.engines', 'mysql.locks'],
    ]);
  });

  it('returns no check if the servers are healthy', () => {
    expect(startProblems(MYSQL_START_CHECKS, mysql())).to.deep.equal([]);
    expect(startProblems(REDIS_START_CHECKS, redisServer())).to.deep.equal([]);
  });
});
