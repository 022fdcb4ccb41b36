import { expect } from 'chai';
import { cpuTimes, parseMachineStat, parseStat, residentBytes } from '../../../bench/session/cpu.js';
import { growth, parseMetrics, sumOf } from '../../../bench/session/metrics.js';

describe('CPU of processes', () => {
  it('a program name with blanks and parentheses does not shift the fields', () => {
    const stat = '42 (node (a b) c) S 1 42 42 0 -1 4194304 100 200 3 4 1150 250 30 20 20 0 11 0 999 1 2';
    expect(parseStat(stat)).to.deep.equal({ own: 14, children: 0.5 });
  });

  it('of the machine, waiting for a disk and time taken by others is not work', () => {
    const { busy, all } = parseMachineStat('cpu  1000 100 500 3000 400 50 50 900 0 0\ncpu0 1 1 1 1');
    expect({ busy, all }).to.deep.equal({ busy: 17, all: 60 });
  });

  it('a process that is gone has none, and no memory', () => {
    const none = 2 ** 30;
    expect([cpuTimes(none), residentBytes(none)]).to.deep.equal([null, null]);
    if (process.platform === 'linux') expect(residentBytes(process.pid)).to.be.greaterThan(1e6);
  });
});

describe('metrics of a program', () => {
  const before = parseMetrics(
    '# HELP a b\nanswers{route="purchase",code="accepted"} 10\nanswers{code="x"} 1\nanswers_sum 5\n',
  );
  const after = parseMetrics('answers{route="purchase",code="accepted"} 25\nanswers{code="x"} 3\nheap 1.5e+06\n');

  it('series of one name are added, those of a longer name are not', () => {
    expect(sumOf(before, 'answers')).to.equal(11);
    expect(sumOf(after, 'answers', 'code="accepted"', 'route="purchase"')).to.equal(25);
    expect(sumOf(after, 'heap')).to.equal(1.5e6);
  });

  it('growth is the difference, and a series that is new grew from zero', () => {
    expect(growth(before, after, 'answers')).to.equal(17);
    expect(growth(before, after, 'heap')).to.equal(1.5e6);
  });
});
