import { expect } from 'chai';
import {
  AlertWatch,
  mergedConditions,
  readAlertRules,
  type Condition,
  type Series,
} from '../../../src/core/conditions.js';

const START_MS = Date.UTC(2030, 0, 1);
const rule = (expr: string, { time = '', summary = 'Late.', severity = 'page' } = {}): string => `
      - alert: Late
        # a comment
        expr: ${expr}${time && `\n        for: ${time}`}
        labels: { severity: ${severity} }
        annotations:
          summary: ${summary}
          action: None.
`;
const watchOf = (...rules: string[]): AlertWatch => new AlertWatch(readAlertRules(rules.join('\n')));
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

  it('begins as `info`, and gets the severity of its alert once it has lasted long enough', () => {
    const watch = watchOf(rule('max(m) > 2', { time: '1m' }));
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
    expect(words(watch), 'it begins again').to.deep.equal(['info null Late. 60000']);
    published = {};
    expect(words(watch), 'the metric is absent').to.deep.equal([]);
  });

  it('reports the worst value of each combination of labels, under its last label', () => {
    const summary = `'{{ $labels.topic }} waits for {{ $labels.group }}: {{ $value | printf "%.0f" }}.'`;
    const watch = watchOf(rule('max by (group, topic) (m) > 30', { summary }));
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

  it('counts only series that its matcher selects', () => {
    published = { m: [series(1, { state: 'refund' })] };
    expect(words(watchOf(rule('max(m{state="outbox"}) > 0')))).to.deep.equal([]);
    expect(words(watchOf(rule('max(m{state="refund"}) > 0')))).to.have.length(1);
    expect(words(watchOf(rule('max(m{state!="refund"}) > 0')))).to.deep.equal([]);
    expect(words(watchOf(rule('max(m{state!="outbox"}) > 0')))).to.have.length(1);
  });

  it('divides or subtracts two series with the same labels', () => {
    const share = watchOf(rule('max by (server) (used / max) > 0.8'));
    published = {
      used: [series(81, { server: 'a' }), series(81, { server: 'b' }), series(81, { server: 'c' })],
      max: [series(100, { server: 'a' }), series(200, { server: 'b' })],
    };
    expect(words(share)).to.deep.equal(['page a Late. 0']);
    const behind = watchOf(rule('max(newest - own) > 0'));
    published = { newest: [series(7)], own: [series(7)] };
    expect(words(behind)).to.deep.equal([]);
    published = { newest: [series(7)], own: [series(6)] };
    expect(words(behind)).to.have.length(1);
  });

  it('reports the smallest value below a lower limit', () => {
    const watch = watchOf(rule('min by (server) (m) < 7', { summary: "'{{ $labels.server }} {{ $value }}'" }));
    published = { m: [series(6, { server: 'a' }), series(2, { server: 'a', host: 'x' }), series(8, { server: 'b' })] };
    expect(words(watch)).to.deep.equal(['page a a 2 0']);
  });

  it('lasts for the window of `max_over_time` after the last bad value', () => {
    const watch = watchOf(rule('max(max_over_time(m[1m])) > 1', { time: '1m' }));
    published = { m: [series(2)] };
    expect(words(watch)).to.deep.equal(['info null Late. 0']);
    published = { m: [series(1)] };
    atMs = 60_000;
    expect(words(watch)).to.deep.equal(['page null Late. 0']);
    atMs = 60_001;
    expect(words(watch)).to.deep.equal([]);
  });

  it('lists each metric once, even if several rules read it', () => {
    const watch = watchOf(rule('max(m) > 1'), rule('max(m / n) > 1'), rule('max(m - o) > 1'));
    expect(watch.metrics).to.deep.equal(['m', 'n', 'o']);
  });

  it('reads a quoted or folded summary, and the severity', () => {
    const quoted = rule('max(m) > 0', { summary: "'It''s: late.'", severity: 'ticket' });
    const folded = rule('max(n) > 0', { summary: '>-\n            It is\n            late.' });
    expect(readAlertRules(quoted + folded).map(({ summary, severity }) => [summary, severity])).to.deep.equal([
      ["It's: late.", 'ticket'],
      ['It is late.', 'page'],
    ]);
  });

  it('leaves out alerts that need Prometheus', () => {
    const exprs = [
      'sum(increase(m[10m])) > 0',
      'max(m) - (max(m offset 1d) or vector(0)) > 0',
      'min(m) > 1800 or absent(m)',
      'absent(m)',
      'max by (job) (rate(m[5m])) > 1',
    ];
    expect(readAlertRules(exprs.map((expr) => rule(expr)).join('\n'))).to.deep.equal([]);
  });

  it('merges conditions of several processes under the earliest time and the worst severity', () => {
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
