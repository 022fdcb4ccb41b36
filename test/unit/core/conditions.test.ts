import { expect } from 'chai';
import {
  AlertWatch,
  mergedConditions,
  type AlertRule,
  type Condition,
  type Series,
} from '../../../src/core/conditions.js';

const START_MS = Date.UTC(2030, 0, 1);
const rule = (parts: Partial<AlertRule>): AlertRule => ({
  name: 'Late',
  severity: 'page',
  forMs: 0,
  text: 'Late.',
  metric: 'm',
  ...parts,
});
const series = (value: number, labels: Series['labels'] = {}): Series => ({ labels, value });

describe('conditions', () => {
  let published: Record<string, Series[]>;
  let atMs: number;
  beforeEach(() => {
    published = {};
    atMs = 0;
  });
  const seen = (watch: AlertWatch): Condition[] =>
    watch.look((metric) => published[metric] ?? [], { nowMs: START_MS + atMs, monotonicMs: 50_000 + atMs });
  const words = (watch: AlertWatch): string[] =>
    seen(watch).map(({ severity, about, text, sinceMs }) => `${severity} ${about} ${text} ${sinceMs - START_MS}`);

  it('one that has just begun is `info`, and after its time what the alert says; it ends with its cause', () => {
    const watch = new AlertWatch([rule({ above: 2, forMs: 60_000 })]);
    published = { m: [series(2)] };
    expect(words(watch)).to.deep.equal([]);
    published = { m: [series(3)] };
    expect(words(watch)).to.deep.equal(['info null Late. 0']);
    atMs = 59_999;
    expect(words(watch)).to.deep.equal(['info null Late. 0']);
    atMs = 60_000;
    expect(words(watch)).to.deep.equal(['page null Late. 0']);
    published = { m: [series(0)] };
    expect(words(watch)).to.deep.equal([]);
    published = { m: [series(3)] };
    expect(words(watch), 'it begins anew').to.deep.equal(['info null Late. 60000']);
    published = {};
    expect(words(watch), 'nobody publishes it').to.deep.equal([]);
  });

  it('one for each value of its labels, about the last of them, with the worst figure', () => {
    const text = '{topic} waits for {group}: {value}.';
    const watch = new AlertWatch([rule({ above: 30, by: ['group', 'topic'], text })]);
    published = {
      m: [
        series(31, { group: 'g', topic: 't', host: 'a' }),
        series(40.4, { group: 'g', topic: 't', host: 'b' }),
        series(99, { group: 'h', topic: 't' }),
        series(30, { group: 'i', topic: 't' }),
      ],
    };
    expect(words(watch)).to.deep.equal(['page t t waits for g: 40. 0', 'page t t waits for h: 99. 0']);
    expect(new Set(seen(watch).map(({ key }) => key)).size).to.equal(2);
  });

  it('only series with its labels count, and none with those that it leaves out', () => {
    const watch = new AlertWatch([rule({ above: 0, where: { state: 'outbox' }, whereNot: { kind: 'old' } })]);
    published = { m: [series(1, { state: 'refund' }), series(1, { state: 'outbox', kind: 'old' })] };
    expect(words(watch)).to.deep.equal([]);
    published = { m: [series(1, { state: 'outbox', kind: 'new' })] };
    expect(words(watch)).to.have.length(1);
  });

  it('a share and a difference are of series with the same labels', () => {
    const share = new AlertWatch([rule({ above: 0.8, by: ['server'], dividedBy: 'max', metric: 'used' })]);
    published = {
      used: [series(81, { server: 'a' }), series(81, { server: 'b' }), series(81, { server: 'c' })],
      max: [series(100, { server: 'a' }), series(200, { server: 'b' })],
    };
    expect(words(share)).to.deep.equal(['page a Late. 0']);
    const behind = new AlertWatch([rule({ above: 0, less: 'own', metric: 'newest' })]);
    published = { newest: [series(7)], own: [series(7)] };
    expect(words(behind)).to.deep.equal([]);
    published = { newest: [series(7)], own: [series(6)] };
    expect(words(behind)).to.have.length(1);
  });

  it('one that is bad below a figure takes the smallest', () => {
    const watch = new AlertWatch([rule({ below: 7, by: ['server'], text: '{server} {value}' })]);
    published = { m: [series(6, { server: 'a' }), series(2, { server: 'a', host: 'x' }), series(8, { server: 'b' })] };
    expect(words(watch)).to.deep.equal(['page a a 2 0']);
  });

  it('a breaker that is half open between two tries has not ended', () => {
    const watch = new AlertWatch([rule({ above: 1, lastsMs: 60_000, forMs: 60_000 })]);
    published = { m: [series(2)] };
    expect(words(watch)).to.deep.equal(['info null Late. 0']);
    published = { m: [series(1)] };
    atMs = 60_000;
    expect(words(watch)).to.deep.equal(['page null Late. 0']);
    atMs = 60_001;
    expect(words(watch)).to.deep.equal([]);
  });

  it('names the metrics that it asks for, each once', () => {
    const watch = new AlertWatch([
      rule({ above: 1 }),
      rule({ above: 1, dividedBy: 'n' }),
      rule({ above: 1, less: 'o' }),
    ]);
    expect(watch.metrics).to.deep.equal(['m', 'n', 'o']);
  });

  it('what several processes see is one: the earliest, as severe as one of them says, the worst first', () => {
    const one = { key: 'a', name: 'A', about: null, text: 'a' };
    const merged = mergedConditions([
      { ...one, severity: 'info', sinceMs: 5 },
      { ...one, severity: 'ticket', sinceMs: 9 },
      { ...one, key: 'b', severity: 'page', sinceMs: 99 },
      { ...one, key: 'c', severity: 'page', sinceMs: 98 },
    ]);
    expect(merged.map(({ key, severity, sinceMs }) => [key, severity, sinceMs])).to.deep.equal([
      ['c', 'page', 98],
      ['b', 'page', 99],
      ['a', 'ticket', 5],
    ]);
  });
});
