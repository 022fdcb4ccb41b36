import { expect } from 'chai';
import { AlertLog, flawOf, problemsOf } from '../../chaos/demo-command.js';

const PARKED = { name: 'SeckillDeadLetterParked', about: '' };
const line = { board: 'b', panel: 'p', legend: 'l', expr: 'e', series: 1, wrong: null };

describe('what chaos demo says', () => {
  it('an alert fires once until it clears, two of one rule apart, and again after that', () => {
    const log = new AlertLog();
    const firing = (...abouts: string[]) => abouts.map((about) => ({ name: 'A', about, state: 'firing' as const }));
    log.take([{ name: 'A', about: 'sale=1', state: 'pending' }], 5);
    expect(log.fired).to.deep.equal([]);
    log.take(firing('sale=1'), 10);
    log.take(firing('sale=1', 'sale=2'), 15);
    log.take(firing('sale=2'), 20);
    log.take(firing('sale=1', 'sale=2'), 25);
    expect(log.fired.map(({ about, firedS, clearedS }) => [about, firedS, clearedS])).to.deep.equal([
      ['sale=1', 10, 20],
      ['sale=2', 15, null],
      ['sale=1', 25, null],
    ]);
  });

  it('a line of a board has data if one value is a number, and a name if its labels are there', () => {
    const values = [Number.NaN, 1];
    expect(flawOf([], [])).to.equal('no data');
    expect(flawOf([{ labels: {}, values: [Number.NaN] }], [])).to.equal('no data');
    expect(flawOf([{ labels: { sale: '7' }, values }], ['sale'])).to.equal(null);
    expect(flawOf([{ labels: { sale: '7' }, values }], ['code'])).to.equal('a line has no label code');
  });

  it('it is red without right books, without an alert that fired and cleared, or with a panel that shows nothing', () => {
    const cleared = [{ ...PARKED, firedS: 30, clearedS: 90 }];
    expect(problemsOf(cleared, [line], true)).to.deep.equal([]);
    expect(problemsOf(cleared, [line], false)).to.have.length(1);
    expect(problemsOf([{ ...PARKED, firedS: 30, clearedS: null }], [line], true)).to.deep.equal([
      'SeckillDeadLetterParked did not fire and clear',
    ]);
    expect(problemsOf(cleared, [{ ...line, wrong: 'no data' }], true)).to.deep.equal(['b, p, l: no data: e']);
  });
});
