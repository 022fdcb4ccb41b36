import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { ALERT_RULES, type AlertRule } from '../../src/core/conditions.js';
import { publishedMetrics } from '../helpers/published-metrics.js';

const FILES = ['alerts.yml', 'objectives.yml'].map(
  (name) => new URL(`../../deploy/prometheus/${name}`, import.meta.url),
);

/** What a console does not show by itself, since no process can tell it from what its metrics are now. */
const NEEDS_PROMETHEUS: Readonly<Record<string, string>> = {
  SeckillForgedMessages: 'a rise over ten minutes',
  SeckillCompensationGivenUp: 'compared with a day ago',
  SeckillHotSaleNotSplit: 'compared with an hour ago',
  SeckillReconcileOld: 'the newest of all keepers, or none at all',
  SeckillMessagesNotWatched: 'that nobody publishes a metric',
  SeckillKeeperAbsent: 'that nobody publishes a metric; the api sees that no keeper reports, and says so by this name',
  SeckillKeeperJobFails: 'a rise over five minutes',
  SeckillIssuerKeysNotRead: 'a rise over a quarter of an hour',
  SeckillOrdersLate: 'rates over hours',
  SeckillOrdersLateSlowly: 'rates over hours',
  SeckillPurchasesFail: 'rates over hours',
  SeckillPurchasesFailSlowly: 'rates over hours',
  SeckillBuyersWait: 'a quantile over minutes',
};

interface Alert {
  readonly expr: string;
  readonly forMs: number;
  readonly severity: string;
  readonly summary: string;
}

const UNITS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000 };

/** Reads the two files as they are written here: one key per line, a long text folded below `>-`. */
function alertsOf(text: string): Map<string, Alert> {
  const alerts = new Map<string, Alert>();
  for (const [index, block] of text.split(/^ +- (?=alert:|record:)/m).entries()) {
    const name = /^alert: (\w+)$/m.exec(block)?.[1];
    if (index === 0 || name === undefined) continue;
    const valueOf = (key: string): string | undefined => {
      const line = new RegExp(`^( +)${key}: (.*)\\n((?:\\1 +.*\\n)*)`, 'm');
      const [, , inline = '', folded = ''] = line.exec(`${block}\n`) ?? [];
      return inline === '>-' ? folded.trim().replaceAll(/\s+/g, ' ') : inline === '' ? undefined : inline;
    };
    const [, length = '0', unit = 's'] = /^(\d+)([smh])$/.exec(valueOf('for') ?? '0s') ?? [];
    alerts.set(name, {
      expr: String(valueOf('expr')),
      forMs: Number(length) * (UNITS[unit] ?? NaN),
      severity: /severity: (\w+)/.exec(block)?.[1] ?? '',
      summary: String(valueOf('summary')).replace(/^'(.*)'$/, '$1'),
    });
  }
  return alerts;
}

/** The rule as PromQL. */
function exprOf({
  metric,
  where = {},
  whereNot = {},
  dividedBy,
  less,
  by = [],
  above,
  below,
  lastsMs,
}: AlertRule): string {
  const matchers = [
    ...Object.entries(where).map(([name, value]) => `${name}="${value}"`),
    ...Object.entries(whereNot).map(([name, value]) => `${name}!="${value}"`),
  ];
  const selector = matchers.length === 0 ? metric : `${metric}{${matchers.join(',')}}`;
  const lasting = lastsMs === undefined ? selector : `max_over_time(${selector}[${lastsMs / 60_000}m])`;
  const inner =
    dividedBy !== undefined ? `${lasting} / ${dividedBy}` : less !== undefined ? `${lasting} - ${less}` : lasting;
  const over = by.length === 0 ? '' : ` by (${by.join(', ')}) `;
  return above === undefined ? `min${over}(${inner}) < ${below}` : `max${over}(${inner}) > ${above}`;
}

const textOf = (summary: string): string =>
  summary.replaceAll(/\{\{ \$labels\.(\w+) \}\}/g, '{$1}').replaceAll(/\{\{ \$value [^}]*\}\}/g, '{value}');

describe('guard: conditions of the console are the alerts of Prometheus', () => {
  const alerts = new Map(FILES.flatMap((file) => [...alertsOf(readFileSync(file, 'utf8'))]));

  it('each condition has the expression, the time, the severity and the words of its alert', () => {
    expect(ALERT_RULES.length).to.be.greaterThan(20);
    for (const rule of ALERT_RULES) {
      const { name, forMs, severity, text } = rule;
      expect({ name, expr: exprOf(rule), forMs, severity, summary: text }).to.deep.equal({
        name,
        ...alerts.get(name),
        summary: textOf(alerts.get(name)?.summary ?? ''),
      });
    }
  });

  it('every alert is a condition, or says why only Prometheus can tell', () => {
    const shown = ALERT_RULES.map(({ name }) => name);
    expect([...shown, ...Object.keys(NEEDS_PROMETHEUS)].sort()).to.deep.equal([...alerts.keys()].sort());
  });

  it('every metric of a condition is one that a program publishes', async () => {
    const published = await publishedMetrics();
    const named = ALERT_RULES.flatMap(({ metric, dividedBy, less }) => [metric, dividedBy, less]);
    expect(named.filter((metric) => metric !== undefined && !published.has(metric))).to.deep.equal([]);
  });
});
