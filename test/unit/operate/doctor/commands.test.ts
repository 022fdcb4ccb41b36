import { expect } from 'chai';
import { doctorCommand, reportLines } from '../../../../src/operate/doctor/commands.js';
import { reportOn } from '../../../../src/operate/doctor/report.js';
import { allFacts, mysql, redis } from '../../../helpers/doctor-facts.js';

const facts = allFacts({
  redis: redis({ fsync: null, replicas: 0 }),
  mysql: mysql({ readOnly: true, user: 'a\x1b[2J' }),
});

describe('seckill doctor: output', () => {
  it('prints one line per check, grouped by server, advice for failed checks, and a total', () => {
    const lines = reportLines(reportOn(facts));
    expect(lines.filter((line) => /^\w/.test(line)).slice(0, -1)).to.deep.equal([
      'Settings',
      'Redis',
      'MySQL',
      'RocketMQ',
    ]);
    expect(lines).to.include('  ok     redis.eviction              noeviction');
    expect(lines).to.include('  ?      redis.fsync                 Redis does not show appendfsync');
    const at = lines.findIndex((line) => line.includes('mysql.writable'));
    expect(lines[at]).to.equal('  WRONG  mysql.writable              MySQL is read-only.');
    expect(lines[at + 1]?.trim()).to.equal('→ Let MYSQL_URL name the primary server, or set read_only to OFF.');
    expect(lines[at + 1]?.indexOf('→'), 'below the sentence').to.equal(lines[at]?.indexOf('MySQL is'));
    expect(lines.at(-1)).to.match(/^\d+ ok, 1 risky, 1 wrong, 1 unknown\.$/);
    expect(lines.join('\n'), 'no control sequence of a server').not.to.include('\x1b');
  });
});

describe('seckill doctor: options', () => {
  const refusalOf = (...args: string[]): string => {
    const command = doctorCommand().exitOverride((error) => {
      throw error;
    });
    command.configureOutput({ writeErr: () => undefined });
    command.action(() => undefined);
    try {
      command.parse(args, { from: 'user' });
      return '';
    } catch (error) {
      return (error as Error).message;
    }
  };

  it('refuses to accept a check that does not exist', () => {
    expect(refusalOf('--accept', 'redis.replicas, mysql.binlog')).to.equal('');
    expect(refusalOf('--accept', 'redis.replica')).to.include('"redis.replica" is not a check');
    expect(refusalOf('--program', 'cook')).to.include('Allowed choices are api, worker, keeper');
  });
});
